/** One instance of a fleet, as a process of its own: makes content ready when it is asked, and puts it when it is told. */
import { freshList } from '../content.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'
import { putAndRelease } from '../peers/pool.mjs'
import { perSecond } from '../rounds.mjs'

const { server, name, length, width } = JSON.parse(process.argv[2])
const store = await openPgPool({ ...server, poolMax: 4 }, name, { fleet: {} })
let contents = []

const putAll = () => perSecond({ count: contents.length, width }, i => putAndRelease(store, contents[i]))

process.on('message', async message => {
  if ('prepare' in message) contents = freshList(message.prepare, length)
  else await putAll()
  process.send('done')
})
process.on('disconnect', () => store.close())
process.send('done')

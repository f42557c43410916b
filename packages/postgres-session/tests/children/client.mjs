// A process that uses sessions with a server that means ill, as often as it is told to, and says how each call ended. It imports the package
// as it is published, so it needs a build. Anything that is thrown outside of a promise ends it, as it would end an application.
import { ConnectionError, classifyPostgres, copyLongRows, ServerError, Sessions } from '@alkblobs/postgres-session'

const TIMEOUTS = { connectTimeoutMs: 10_000, lockTimeoutMs: 1_000 }
const text = 'SELECT $1'
const params = [Buffer.from('1')]

async function* rows() {
  yield [Buffer.from('1')]
}

const ways = {
  rows: (over, call) => over.use(call, session => Promise.all([session.rows(text, ['1']), session.rows(text, ['2'])])),
  run: (over, call) => over.use(call, session => session.run('SELECT 1; SELECT 2')),
  binary: (over, call) => over.use(call, session => session.binaryRows({ text, params })),
  both: (over, call) =>
    over.use(call, session =>
      Promise.all([
        session.binaryRows({ text, params }),
        session.rows(text, ['1']),
        session.binaryRows({ text, params })
      ])
    ),
  copy: (over, call) =>
    over.use(call, session =>
      Promise.all([session.copyIn('COPY t FROM STDIN', copyLongRows(rows())), session.run('SELECT 1')])
    ),
  transaction: (over, call) => over.transaction(call, session => session.run('SELECT 1')),
  exchange: (over, call) =>
    over.exchange(call, {
      first: () => [{ text, params }],
      decide: () => ({ result: undefined, last: [{ text, params }] })
    }),
  hold: async (over, call) => {
    const held = await over.hold(call)
    await held.begin(call)
    await held.commit(call)
    await held.release()
  }
}

/** An error of ours, which says what is the matter. */
function nameOf(error) {
  const code = classifyPostgres(error)
  const isOurs = error.name === 'EngineFault' || error instanceof ServerError
  if (isOurs || (error instanceof ConnectionError && code !== 'unknown')) return code
  return `unnamed: ${error.stack}`
}

async function played({ port, way, ssl, waitMs }) {
  const over = new Sessions(
    { host: '127.0.0.1', port, user: 'u', password: 'secret', database: 'd', ssl, poolMax: 2 },
    TIMEOUTS
  )
  // A timer of the same loop fires in its order, however late a busy machine lets it.
  let late
  const deadline = new Promise(resolve => {
    late = setTimeout(() => resolve('late'), waitMs + 500)
  })
  const call = { deadlineMs: performance.now() + waitMs }
  const ended = ways[way](over, call).then(() => 'done', nameOf)
  const end = await Promise.race([ended, deadline])
  clearTimeout(late)
  await over.close()
  return end
}

process.on('message', async games => {
  if (games === 'end') return process.disconnect()
  process.send({ ends: await Promise.all(games.map(played)), maxRssKiB: process.resourceUsage().maxRSS })
})
process.send('ready')

// Many small contents through one store: put, read, put again, swept. Says what it counted and how fast it was.
import { contentOf, filesIn, given, inLanes, openPool, say } from './pool.mjs'

const { folder, count, lanes, threshold } = given
const lengthOf = n => 64 + ((n * 7_919) % 8_128)
const contents = Array.from({ length: count }, (_, n) => contentOf(`file ${n}`, lengthOf(n)))
const bytes = contents.reduce((sum, { length }) => sum + length, 0)
const keys = []
const store = await openPool(folder, { threshold })

async function timed(work) {
  const start = performance.now()
  const result = await work()
  return { result, perSecond: Math.round(count / ((performance.now() - start) / 1_000)) }
}

async function putAll() {
  let created = 0
  await inLanes(contents, lanes, async (content, n) => {
    const receipt = await store.put(content)
    keys[n] = receipt.key
    if (receipt.created) created++
    await receipt.release()
  })
  return created
}

async function readAll() {
  let same = 0
  await inLanes(keys, lanes, async (key, n) => {
    const blob = await store.get(key)
    if (Buffer.compare(await blob.bytes(), contents[n]) === 0) same++
  })
  return same
}

const put = await timed(putAll)
const read = await timed(readAll)
const again = await timed(putAll)
const live = keys.filter((_, n) => n % 2 === 0)
store.protect({ name: 'even ones', live: () => live })
const staging = await timed(() => store.sweep())
const removing = await timed(() => store.sweep())
const usage = await store.usage()
const left = await store.hasMany(keys)
const { clean } = await store.verify()
await store.close()
const survivors = keys.filter((key, n) => left.get(key) === (n % 2 === 0)).length
say({
  bytes,
  distinct: new Set(keys).size,
  put,
  read,
  again,
  staging,
  removing,
  usage,
  survivors,
  clean,
  files: filesIn(folder)
})

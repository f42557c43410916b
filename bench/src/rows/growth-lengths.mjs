/** Throughput over the length of a blob: one after the other, durable, verified. */
import { freshBytes, freshStream } from '../content.mjs'
import { writeDurably, writeStream } from '../peers/plain-files.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'

const KIB = 1024
const MIB = 1024 * KIB
/** Bytes that one contestant moves in one round, within 1 and COUNT_MAX blobs. */
const TOTAL = 32 * MIB
const COUNT_MAX = 128
/** Blobs of one length that are read over and over. */
const READ = 8

const written = length =>
  length >= MIB ? `${length / MIB} MiB` : length >= KIB ? `${length / KIB} KiB` : `${length} B`
/** A single byte is always the same: there are not enough different ones. */
const contentOf = length => (length > MIB ? freshStream(length) : freshBytes(Math.max(16, length)).subarray(-length))

export const growthLengths = {
  id: 'growth-lengths',
  needs: 'growth',
  unit: 'MB/s',
  titleOf: () => 'one blob after the other, by its length',
  roundsOf: ({ scale }) => Math.min(3, scale.rounds),
  async contestants({ site, scale, closing }) {
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const files = site.folder('files')
    let named = 0
    const contestants = []
    for (const length of scale.growthLengths) {
      const count = Math.min(COUNT_MAX, Math.max(1, Math.floor(TOTAL / length)))
      const keys = []
      for (let i = 0; i < Math.min(READ, count); i++) keys.push(await putAndRelease(store, contentOf(length)))
      const measured = (id, name, note, work) => ({
        id: `${id}${length}`,
        name: `${name}, ${written(length)}`,
        note,
        run: () => throughput(count, length, work)
      })
      contestants.push(
        measured('put', 'put', 'durable, hashed, pinned and released', () => putAndRelease(store, contentOf(length))),
        measured('get', 'get', 'verified', async i => drain(await store.get(keys[i % keys.length]))),
        measured('file', 'a file by hand', 'durable; hashed above 1 MiB', async () => {
          const path = `${files}/${++named}`
          if (length > MIB) await writeStream(path, freshStream(length))
          else await writeDurably(path, contentOf(length))
        })
      )
    }
    return contestants
  },
  ratiosOf: () => [],
  seriesOf: ({ scale }) => ({
    title: 'Throughput over the length of a blob, one after the other',
    x: 'bytes',
    y: 'MB a second',
    lines: [
      ['put', 'put'],
      ['get', 'get'],
      ['file', 'file, synced']
    ].map(([id, name]) => ({
      name,
      points: scale.growthLengths.map(length => ({ x: length, id: `${id}${length}`, scale: 1 }))
    }))
  })
}

async function throughput(count, length, work) {
  const from = performance.now()
  for (let i = 0; i < count; i++) await work(i)
  return (count * length) / 1000 / (performance.now() - from)
}

async function drain(blob) {
  if (blob.size <= MIB) return blob.bytes()
  for await (const chunk of blob) chunk.at(0)
}

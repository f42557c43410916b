/** How long the event loop stands still while small puts are committed and a large stream comes in: everybody else waits that long. */
import { freshBytes, freshKeys, freshList, freshStream } from '../content.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { openTable } from '../peers/table-of-blobs.mjs'

const LENGTH = 16 * 1024
const IN_FLIGHT = 64
/** Nobody notices less. */
const UNNOTICED_MS = 20

export const eventLoop = {
  id: 'event-loop',
  unit: 'ms',
  titleOf: ({ scale }) =>
    `the longest standstill while ${IN_FLIGHT} small puts are in flight and ${scale.streamLength / 2 ** 20} MiB stream in`,
  roundsOf: ({ scale }) => Math.min(3, scale.rounds),
  async contestants({ site, scale, closing }) {
    const store = await openPool(site.folder('pool'))
    const table = openTable(`${site.folder('sqlite')}/blobs.db`)
    closing(() => store.close())
    closing(() => table.close())
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs sqlite + local',
        note: 'a gap between two turns of the event loop',
        run: () => longestGap(busy(store, scale.streamLength))
      },
      {
        id: 'sqlite',
        name: `better-sqlite3, transactions of ${IN_FLIGHT}`,
        note: 'its longest commit, checkpoints included',
        run: () => longestCommit(table, scale.small.count)
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'event-loop',
      value: round => round.alkblobs.figure / Math.max(UNNOTICED_MS, 1.5 * round.sqlite.figure),
      atMost: 1,
      against: `the greater of ${UNNOTICED_MS} ms and one and a half of the longest raw commit`
    }
  ]
}

/** A stream under way, and small puts for as long as it lasts. */
async function busy(store, streamLength) {
  let isOver = false
  const lane = async () => {
    while (!isOver) await putAndRelease(store, freshBytes(LENGTH))
  }
  const lanes = Array.from({ length: IN_FLIGHT }, lane)
  await putAndRelease(store, freshStream(streamLength))
  isOver = true
  await Promise.all(lanes)
}

async function longestGap(work) {
  let longest = 0
  let last = performance.now()
  let isOver = false
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await work
  isOver = true
  return longest
}

function longestCommit(table, count) {
  let longest = 0
  for (let done = 0; done < count; done += IN_FLIGHT) {
    const [keys, bodies] = [freshKeys(IN_FLIGHT), freshList(IN_FLIGHT, LENGTH)]
    const from = performance.now()
    table.putAll(keys, bodies)
    longest = Math.max(longest, performance.now() - from)
  }
  return longest
}

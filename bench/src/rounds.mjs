/**
 * Rounds: in each, every contestant runs once, beside its peers and under the same load. The order turns from round to round, so that
 * nobody always runs first or behind the same neighbour. A ratio is taken within a round; what is reported is the median.
 */
import { settleDisk } from './site.mjs'

/**
 * Runs the contestants and answers one object a round: contestant id to `{ figure, ... }`, the figure in the unit of the row. The first
 * round warms up (compiles code, fills caches) and does not count, unless the contestants run in processes of their own. A contestant whose
 * rounds are too short for that has a `warm` of its own.
 */
export async function race(contestants, { rounds, warmUp = true }) {
  const results = []
  for (let round = warmUp ? -1 : 0; round < rounds; round++) {
    const result = {}
    for (const contestant of turned(contestants, round + 1)) {
      globalThis.gc?.()
      const found = await (round < 0 && contestant.warm !== undefined ? contestant.warm() : contestant.run())
      result[contestant.id] = typeof found === 'number' ? { figure: found } : found
      if (contestant.leavesDirty) settleDisk()
    }
    if (round >= 0) results.push(result)
  }
  return results
}

function turned(list, by) {
  const from = by % list.length
  return [...list.slice(from), ...list.slice(0, from)]
}

/**
 * Does `work(0)` to `work(lead + count - 1)`, `width` of them at a time, and answers how many a second were done behind the lead. The clock
 * starts in full flight: what the lead leaves to be done later falls into the measured time, as what the end leaves falls out of it.
 */
export async function perSecond({ count, lead = 0, width = 1 }, work) {
  let next = 0
  let done = 0
  let from = performance.now()
  const lane = async () => {
    while (next < lead + count) {
      await work(next++)
      if (++done === lead) from = performance.now()
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return (count / (performance.now() - from)) * 1000
}

/** Milliseconds that one piece of work takes. */
export async function milliseconds(work) {
  const from = performance.now()
  await work()
  return performance.now() - from
}

/** Megabytes a second, of 1,000,000 bytes, that a piece of work moves. */
export async function megabytesPerSecond(length, work) {
  return length / 1000 / (await milliseconds(work))
}

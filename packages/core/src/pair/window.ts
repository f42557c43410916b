/** Candidates of both, one catalog after the other: `lease`, `candidates`, `stageCandidates`, `due`, `maintain`. */
import type { Call, CandidatePage, Catalog, Lease } from '../engine.js'
import type { Pair } from './index.js'
import { nextOf, type PairLeases, sideOf } from './sides.js'

type Window = Pick<Catalog, 'lease' | 'candidates' | 'stageCandidates' | 'due' | 'maintain'>

export function windowOf(pair: Pair, leases: PairLeases): Window {
  return {
    lease: leases.lease,

    async candidates(lease, after, limit, call) {
      const held = lease && leases.held(lease)
      const { side, name } = sideOf(after)
      const page = await pair[side].candidates(held?.[side], name, limit, call)
      const judged = side === 'near' ? await judgedByTables(pair, page, held?.far, call) : page
      return { ...judged, next: nextOf(side, page.next) }
    },

    async stageCandidates(lease, keys, call) {
      const held = leases.held(lease)
      // Each stages what it has; a key that both have is one candidate of the page.
      const staged = await pair.far.stageCandidates(held.far, keys, call)
      return [...new Set([...staged, ...(await pair.near.stageCandidates(held.near, keys, call))])]
    },

    async due(lease, after, limit, call) {
      const held = leases.held(lease)
      const { side, name } = sideOf(after)
      const page = await pair[side].due(held[side], name, limit, call)
      held.due = { side, keys: new Set(page.keys) }
      return { keys: page.keys, next: nextOf(side, page.next) }
    },

    async maintain(lease, call) {
      const held = leases.held(lease)
      const far = await pair.far.maintain(held.far, call)
      const near = await pair.near.maintain(held.near, call)
      return {
        pinsReaped: near.pinsReaped + far.pinsReaped,
        stagesTrashed: near.stagesTrashed + far.stagesTrashed
      }
    }
  }
}

/** Memory cannot look at the application's tables; the server is asked about the keys that nothing else protects. */
async function judgedByTables({ far }: Pair, page: CandidatePage, lease: Lease | undefined, call: Call) {
  const asked = [...page.keys, ...page.cancelled]
  if (far.sqlLiveness === undefined || asked.length === 0) return page
  const live = new Set(await far.sqlLiveness.among(asked, lease, call))
  const keys = page.keys.filter(key => !live.has(key))
  const cancelled = page.cancelled.filter(key => !live.has(key))
  const alreadyStaged = page.alreadyStaged - page.cancelled.length + cancelled.length
  return { ...page, live: page.live + live.size, alreadyStaged, cancelled, keys }
}

/** What exists, in both: `find`, `read`, `list`, `explain`, `usage`. */
import type { Catalog, Entry, TierUsage } from '../engine.js'
import type { BlobKey } from '../key.js'
import type { Pair } from './index.js'

type Entries = Pick<Catalog, 'find' | 'read' | 'list' | 'explain' | 'usage'>

export function entriesOf({ near, far }: Pair): Entries {
  return {
    async find(keys, call) {
      const found = await near.find(keys, call)
      const missing = keys.filter((_, i) => found[i] === undefined)
      if (missing.length === 0) return found
      const others = (await far.find(missing, call)).values()
      return found.map(entry => entry ?? others.next().value)
    },

    read: async (key, call) => (await near.read(key, call)) ?? (await far.read(key, call)),

    async list(after, limit, call) {
      const pages = await Promise.all([far.list(after, limit, call), near.list(after, limit, call)])
      // The near one of a key that both have comes last, and stays.
      const entries = new Map<BlobKey, Entry>(pages.flat().map(entry => [entry.key, entry]))
      return [...entries.values()].sort((one, other) => (one.key < other.key ? -1 : 1)).slice(0, limit)
    },

    async explain(key, call) {
      const [one, other] = await Promise.all([near.explain(key, call), far.explain(key, call)])
      return {
        entry: one.entry ?? other.entry,
        pins: [...one.pins, ...other.pins],
        window: one.window ?? other.window
      }
    },

    async usage(call) {
      const [one, other] = await Promise.all([near.usage(call), far.usage(call)])
      const sum = (name: 'pins' | 'window' | 'stages' | 'trash') => one[name] + other[name]
      return {
        kv: tierSum(one.kv, other.kv),
        large: tierSum(one.large, other.large),
        pins: sum('pins'),
        window: sum('window'),
        stages: sum('stages'),
        trash: sum('trash')
      }
    }
  }
}

function tierSum(one: TierUsage, other: TierUsage): TierUsage {
  return { entries: one.entries + other.entries, bytes: one.bytes + other.bytes }
}

/**
 * The catalog contract in its durable form, over rows in memory: the semantics of engine-sqlite, one transaction for each call.
 * What is decided stands in `rules.ts`.
 */
import type { BlobKey, Catalog, DeleteMark, PoolRecord } from '@alkblobs/core/engine'
import { HeldLease } from './lease.js'
import { rowsAfter } from './medium.js'
import type { Rules } from './rules.js'

const INLINE_MAX = 1024 * 1024

/** `mint` answers a name that nothing had before. */
export function catalogOf(rules: Rules, mint: () => string): Catalog {
  return {
    form: 'durable',
    inlineLengthMax: INLINE_MAX,
    meta: {
      read: async () => rules.medium.record,
      compareAndSet: async (expected, next) => {
        if (!isSame(rules.medium.record, expected)) return false
        rules.medium.record = next
        return true
      }
    },
    ...entries(rules),
    ...writing(rules),
    ...sweeping(rules, mint),
    ...reclaiming(rules)
  }
}

function entries(rules: Rules): Pick<Catalog, 'find' | 'read' | 'list' | 'explain' | 'usage'> {
  const { medium } = rules
  return {
    find: async keys => keys.map(key => medium.entries.get(key)?.entry),
    read: async key => {
      const row = medium.entries.get(key)
      return row?.body === undefined ? row && { entry: row.entry } : { entry: row.entry, body: row.body.slice() }
    },
    list: async (after, limit) => rowsAfter(medium.entries, after, limit).map(([, { entry }]) => entry),
    explain: async key => {
      const now = rules.now()
      const row = medium.window.get(key)
      const pins = [...(medium.pins.get(key) ?? [])]
      const dueInMs = row && row.stagedAt + Math.max(row.delayMs, rules.delayNow) - now
      return {
        entry: medium.entries.get(key)?.entry,
        pins: pins.map(([owner, { expiresAt }]) => ({ owner, expiresInMs: expiresAt - now })),
        window: row && { stagedAgoMs: now - row.stagedAt, dueInMs: dueInMs ?? 0, cancelled: row.cancelled }
      }
    },
    usage: async () => {
      const tiers = { kv: { entries: 0, bytes: 0 }, large: { entries: 0, bytes: 0 } }
      for (const { entry } of medium.entries.values()) {
        tiers[entry.place.tier].entries++
        tiers[entry.place.tier].bytes += entry.length
      }
      const pins = [...medium.pins.keys()].filter(key => rules.isPinned(key)).length
      return { ...tiers, pins, window: medium.window.size, stages: medium.stages.size, trash: medium.trash.size }
    }
  }
}

type Writing = 'stage' | 'staged' | 'unstage' | 'publish' | 'pin' | 'renew' | 'release'

function writing(rules: Rules): Pick<Catalog, Writing> {
  return {
    stage: async stages => {
      rules.checkStamp()
      for (const { id, ttlMs } of stages) rules.medium.stages.set(id, rules.now() + ttlMs)
    },
    staged: async stages => stages.map(stage => rules.isStaged(stage)),
    unstage: async stages => stages.map(stage => rules.trashStage(stage)),
    publish: async items => {
      rules.checkStamp()
      return items.map(item => rules.publish(item))
    },
    pin: async items => {
      rules.checkStamp()
      return items.map(item => rules.pin(item))
    },
    renew: async request => ({
      pins: request.pins.filter(pin => !rules.renewPin(pin, request)),
      stages: request.stages.filter(stage => !rules.renewStage(stage, request.stageTtlMs))
    }),
    release: async pins => {
      for (const pin of pins) rules.releasePin(pin)
    }
  }
}

type Sweeping = 'lease' | 'candidates' | 'stageCandidates' | 'due' | 'mark' | 'remove'

function sweeping(rules: Rules, mint: () => string): Pick<Catalog, Sweeping> {
  const { medium } = rules
  return {
    lease: async () => (rules.isLeaseFree() ? new HeldLease(medium) : undefined),
    candidates: async (lease, after, limit) => {
      if (lease !== undefined) rules.checkLease(lease)
      const page = { scanned: 0, live: 0, alreadyStaged: 0 }
      const cancelled: BlobKey[] = []
      const dead: BlobKey[] = []
      const rows = rowsAfter(medium.entries, after, limit)
      for (const [key] of rows) {
        page.scanned++
        const row = medium.window.get(key)
        if (rules.isPinned(key)) page.live++
        else if (row === undefined) dead.push(key)
        else {
          page.alreadyStaged++
          if (row.cancelled) cancelled.push(key)
        }
      }
      return { ...page, cancelled, keys: dead, next: rows.length < limit ? undefined : rows.at(-1)?.[0] }
    },
    stageCandidates: async (lease, keys) => {
      rules.checkLease(lease)
      rules.checkStamp()
      return keys.filter(key => rules.stageCandidate(key))
    },
    due: async (lease, after, limit) => {
      rules.checkLease(lease)
      const rows = [...medium.window]
        .filter(([, row]) => rules.isDue(row))
        .map(([key, { stagedAt }]) => ({ key, cursor: `${stagedAt}:${key}` }))
        .sort((one, other) => (one.cursor < other.cursor ? -1 : 1))
        .filter(({ cursor }) => after === undefined || cursor > after)
        .slice(0, limit)
      return { keys: rows.map(({ key }) => key), next: rows.length < limit ? undefined : rows.at(-1)?.cursor }
    },
    mark: async key => {
      rules.checkStamp()
      return rules.mark(key, mint() as DeleteMark)
    },
    remove: async (items, trashDelayMs, lease) => {
      rules.checkStamp()
      if (lease !== undefined || items.some(({ kind }) => kind === 'candidate')) rules.checkLease(lease)
      return items.map(item => rules.remove(item, trashDelayMs))
    }
  }
}

function reclaiming(rules: Rules): Pick<Catalog, 'trash' | 'known' | 'discard' | 'dropped' | 'maintain'> {
  const { medium } = rules
  return {
    trash: async (after, limit) => {
      const due = new Map([...medium.trash].filter(([, { notBefore }]) => notBefore <= rules.now()))
      return rowsAfter(due, after, limit).map(([what, { key, length, attempts }]) => ({ what, key, length, attempts }))
    },
    known: async found => found.map(body => rules.isKnown(body)),
    discard: async found => {
      rules.checkStamp()
      for (const body of found) if (!rules.isKnown(body)) rules.toTrash(body.sealed?.locator ?? body.stage, body.sealed)
    },
    dropped: async records => {
      for (const { what, retryAfterMs } of records) {
        const row = medium.trash.get(what)
        if (retryAfterMs === undefined) medium.trash.delete(what)
        else if (row !== undefined) {
          medium.trash.set(what, { ...row, attempts: row.attempts + 1, notBefore: rules.now() + retryAfterMs })
        }
      }
    },
    maintain: async lease => {
      rules.checkLease(lease)
      return rules.maintain()
    }
  }
}

function isSame(one: PoolRecord | undefined, other: PoolRecord | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

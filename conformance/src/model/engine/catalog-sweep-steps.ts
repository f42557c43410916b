/** Steps on a catalog that sweep and delete. */
import type { BlobKey, CandidatePage, DeleteMark, Removal, RemoveOutcome } from '@alkblobs/core/engine'
import fc from 'fast-check'
import { equal, holds, refuses } from '../../expect.js'
import type { MarkRow } from './catalog-pool.js'
import { by, key, stepOf } from './catalog-steps.js'
import { type CatalogWorld, call, entryOf, HOUR_MS, KEYS, keyOf, locatorOf, stageOf } from './catalog-world.js'

const keys = fc.uniqueArray(key, { minLength: 1, maxLength: KEYS })
const isSwept = ({ lease }: CatalogWorld) => lease !== undefined

const lease = stepOf('lease', fc.record({ by }), async (world, args) => {
  const held = await world.at(args.by).lease(call())
  equal(held !== undefined, world.lease === undefined, 'one sweeper at a time')
  if (held === undefined) return
  world.lease = { of: args.by, held }
  world.pool.epoch = new Set(Array.from({ length: KEYS }, (_, n) => n).filter(n => world.pool.isPinned(n)))
})

const endLease = stepOf(
  'endLease',
  fc.constant({}),
  async world => {
    await world.lease?.held.release()
    await world.lease?.held.release()
    world.lease = undefined
    world.pool.epoch = undefined
  },
  isSwept
)

/** Reads the candidates page by page, and adds the pages up. */
async function allCandidates(world: CatalogWorld, hasLease: boolean, limit: number) {
  const sum = { scanned: 0, live: 0, alreadyStaged: 0, cancelled: [] as BlobKey[], keys: [] as BlobKey[] }
  let after: string | undefined
  for (let pages = 0; ; pages++) {
    const held = hasLease ? world.lease?.held : undefined
    const page: CandidatePage = await world.sweeper.candidates(held, after, limit, call())
    holds(
      page.keys.length + page.cancelled.length <= limit && pages <= KEYS,
      'a page of candidates answers no more than asked for, and there is a last'
    )
    sum.scanned += page.scanned
    sum.live += page.live
    sum.alreadyStaged += page.alreadyStaged
    sum.cancelled.push(...page.cancelled)
    sum.keys.push(...page.keys)
    if (page.next === undefined) return sum
    after = page.next
  }
}

const candidates = stepOf(
  'candidates',
  fc.record({ isDry: fc.boolean(), limit: fc.integer({ min: 1, max: 5 }) }),
  async (world, { isDry, limit }) => {
    const { pool } = world
    const hasLease = !isDry && isSwept(world)
    const present = world.sortedKeys()
    const unprotected = present.filter(n => !pool.isProtected(n, hasLease))
    const waiting = unprotected.filter(n => pool.window.has(n))
    const expected = {
      scanned: present.length,
      live: present.length - unprotected.length,
      alreadyStaged: waiting.length,
      cancelled: waiting.filter(n => pool.window.get(n)?.isCancelled).map(keyOf),
      keys: unprotected.filter(n => !pool.window.has(n)).map(keyOf)
    }
    equal(await allCandidates(world, hasLease, limit), expected, 'candidates are told apart and counted')
  }
)

const stageCandidates = stepOf(
  'stageCandidates',
  fc.record({ keys }),
  async (world, args) => {
    const { pool } = world
    const held = world.lease?.held
    if (held === undefined) return
    const staged = await world.sweeper.stageCandidates(held, args.keys.map(keyOf), call())
    const expected = args.keys.filter(n => pool.entries.has(n) && !pool.window.has(n) && !pool.isPinned(n))
    for (const n of expected) pool.window.set(n, { isCancelled: false, delayMs: pool.windowDelayMs })
    equal([...staged].sort(), expected.map(keyOf).sort(), 'staging answers the keys that got a row')
  },
  isSwept
)

const due = stepOf(
  'due',
  fc.record({ limit: fc.integer({ min: 1, max: 5 }) }),
  async (world, { limit }) => {
    const { pool } = world
    const held = world.lease?.held
    const found: BlobKey[] = []
    let after: string | undefined
    do {
      if (held === undefined) return
      const page = await world.sweeper.due(held, after, limit, call())
      holds(page.keys.length <= limit && found.length <= KEYS, 'a page of due rows is no longer than asked for')
      found.push(...page.keys)
      after = page.next
    } while (after !== undefined)
    const expected = [...pool.window.keys()].filter(n => pool.isDue(n)).map(keyOf)
    equal(found.sort(), expected.sort(), 'the rows that are due, each once')
  },
  isSwept
)

const removal = fc.record({ key, isLive: fc.constantFrom(false, false, true) })

const execute = stepOf(
  'execute',
  fc.record({
    items: fc.uniqueArray(removal, { selector: item => item.key, minLength: 1, maxLength: KEYS }),
    isDueAtOnce: fc.boolean()
  }),
  async (world, { items, isDueAtOnce }) => {
    const { pool } = world
    const sent = items.map((item): Removal => ({ kind: 'candidate', key: keyOf(item.key), live: item.isLive }))
    const trashDelayMs = isDueAtOnce ? 0 : HOUR_MS
    const outcomes = await world.sweeper.remove(sent, trashDelayMs, world.lease?.held, call())
    const expected = items.map(({ key: n, isLive }): RemoveOutcome => {
      const row = pool.window.get(n)
      const entry = pool.entries.get(n)
      pool.window.delete(n)
      if (row === undefined || row.isCancelled) return { outcome: 'cancelled' }
      if (entry === undefined) return { outcome: 'deleted', entry: undefined }
      if (isLive || pool.isProtected(n, true)) return { outcome: 'cancelled' }
      pool.take(n, isDueAtOnce)
      return { outcome: 'deleted', entry: entryOf(n, entry) }
    })
    equal(outcomes, expected, 'arbitration of candidates')
  },
  isSwept
)

/** A candidate without the lease is refused, and nothing is done. */
const executeUnleased = stepOf('executeUnleased', fc.record({ by, key }), async (world, args) => {
  const item = { kind: 'candidate', key: keyOf(args.key), live: false } as const
  await refuses(
    () => world.at(args.by).remove([item], 0, undefined, call()),
    () => true,
    'a candidate needs the lease'
  )
})

const mark = stepOf('mark', fc.record({ by, key }), async (world, args) => {
  const { pool } = world
  const answer = await world.at(args.by).mark(keyOf(args.key), call())
  const entry = pool.entries.get(args.key)
  const expected = pool.isPinned(args.key) ? 'pinned' : entry === undefined ? 'absent' : entryOf(args.key, entry)
  equal(typeof answer === 'string' ? answer : answer.entry, expected, 'a mark is refused by a pin, or tells the entry')
  if (typeof answer !== 'string') pool.marks.set(answer.mark, { key: args.key, isCancelled: false })
})

const removeMarked = stepOf(
  'removeMarked',
  fc.record({
    by,
    nth: fc.nat({ max: 3 }),
    isLive: fc.constantFrom(false, false, true),
    at: fc.constantFrom('any', 'there', 'elsewhere'),
    isDueAtOnce: fc.boolean()
  }),
  async (world, args) => {
    const { pool } = world
    const [name, { key: n, isCancelled }] = [...pool.marks][args.nth % pool.marks.size] as [DeleteMark, MarkRow]
    const entry = pool.entries.get(n)
    const elsewhere = { tier: 'large', locator: locatorOf(99) } as const
    const at = args.at === 'there' ? entry?.place : args.at === 'elsewhere' ? elsewhere : undefined
    const item: Removal = { kind: 'marked', key: keyOf(n), mark: name, live: args.isLive, ...(at && { at }) }
    const trashDelayMs = args.isDueAtOnce ? 0 : HOUR_MS
    const [outcome] = await world.at(args.by).remove([item], trashDelayMs, undefined, call())
    pool.marks.delete(name)
    const isAway = entry === undefined || args.at === 'elsewhere'
    const isKept = isCancelled || args.isLive || pool.isPinned(n)
    if (!isAway && !isKept) pool.take(n, args.isDueAtOnce)
    const expected = isAway
      ? { outcome: 'absent' }
      : isKept
        ? { outcome: 'cancelled' }
        : { outcome: 'deleted', entry: entryOf(n, entry) }
    equal(outcome, expected, 'arbitration of a direct delete')
  },
  ({ pool }) => pool.marks.size > 0
)

const maintain = stepOf(
  'maintain',
  fc.constant({}),
  async world => {
    const { pool } = world
    const held = world.lease?.held
    if (held === undefined) return
    const expired = [...pool.pinRows()].filter(([, , row]) => !row.isAlive)
    for (const [n, owner] of expired) pool.unpin(n, owner)
    const over = [...pool.stages].filter(([, isAlive]) => !isAlive)
    for (const [n] of over) {
      pool.stages.delete(n)
      pool.discard(stageOf(n), {})
    }
    const expected = { pinsReaped: expired.length, stagesTrashed: over.length }
    equal(await world.sweeper.maintain(held, call()), expected, 'maintenance ends what has expired')
  },
  isSwept
)

/** Steps that sweep and delete, and how often each is drawn. */
export const sweepingSteps = [
  { weight: 5, arbitrary: lease },
  { weight: 2, arbitrary: endLease },
  { weight: 3, arbitrary: candidates },
  { weight: 5, arbitrary: stageCandidates },
  { weight: 2, arbitrary: due },
  { weight: 5, arbitrary: execute },
  { weight: 1, arbitrary: executeUnleased },
  { weight: 4, arbitrary: mark },
  { weight: 5, arbitrary: removeMarked },
  { weight: 2, arbitrary: maintain }
]

/** Steps that remove or may remove: every report is compared with the model's, field by field. */
import type { DeleteOutcome, Store, SweepOptions, SweepReport, VerifyReport } from '@alkblobs/core'
import fc from 'fast-check'
import { equal, refuses } from '../../expect.js'
import { predictDelete, predictSweep, predictWhy, type SweepPrediction } from '../collecting.js'
import type { RowModel } from '../pool.js'
import { contentNumbers, stepKind, stores } from '../step.js'
import type { OpenStore, World } from '../world.js'

/** What the report says that the model can tell. */
function reported({ cause: _cause, durationMs: _durationMs, failed, aborted, source, ...counts }: SweepReport) {
  return { ...counts, aborted, source, failed: failed.length }
}

/**
 * The due rows that a bounded sweep got to. Which come first is the catalog's order; a row that ended is gone, or is a new one
 * in place of one that was cancelled.
 */
async function executedOf(world: World, store: Store, due: ReadonlyMap<number, RowModel>): Promise<Set<number>> {
  const executed = new Set<number>()
  for (const [content, { isCancelled }] of due) {
    const { window } = await store.why(world.keyOf(content))
    if (window === undefined || (isCancelled && !window.cancelled)) executed.add(content)
  }
  return executed
}

const rowsOf = ({ pool }: World) =>
  new Map([...pool.window].filter(([, row]) => pool.isDue(row)).map(([content, row]) => [content, { ...row }]))

async function sweepAs(world: World, at: OpenStore, options: SweepOptions = {}): Promise<void> {
  const { pool } = world
  const { store, holder, switches } = at
  const { dryRun = false, maxDeletes = Number.POSITIVE_INFINITY } = options
  const report = await store.sweep(options)
  const isBounded = maxDeletes > 0 && maxDeletes < world.contents.length
  // An inline sweep executes what it stages itself: any entry may have a row by then.
  const maybe = new Map(pool.form === 'inline' ? [...pool.entries.keys()].map(content => [content, STAGED]) : [])
  const executed = isBounded ? await executedOf(world, store, new Map([...maybe, ...rowsOf(world)])) : undefined
  const isExecuted = (content: number) => executed?.has(content) ?? true
  const terms = { dryRun, maxDeletes, catalogJudges: switches.catalogJudges, isExecuted }
  const expected: SweepPrediction = predictSweep(pool, holder, terms)
  equal(reported(report), { ...expected, failed: 0 }, 'the report of a sweep')
}

const STAGED: RowModel = { stagedAtMs: 0, delayMs: 0, isCancelled: false }

export const sweep = stepKind<{ by: number; dryRun: boolean; maxDeletes: number | undefined }>({
  name: 'sweep',
  args: () =>
    fc.record({
      by: stores,
      dryRun: fc.constantFrom(false, false, false, false, true),
      maxDeletes: fc.constantFrom(undefined, undefined, undefined, undefined, undefined, 0, 1, 2)
    }),
  async run(world, { by, dryRun, maxDeletes }) {
    await sweepAs(world, world.at(by), { dryRun, ...(maxDeletes === undefined ? {} : { maxDeletes }) })
  }
})

/** A sweep that was cancelled before it began. */
export const cancelledSweep = stepKind<{ by: number }>({
  name: 'cancelledSweep',
  args: () => fc.record({ by: stores }),
  async run(world, { by }) {
    const reason = new Error('no longer wanted')
    const report = await world.at(by).store.sweep({ signal: AbortSignal.abort(reason) })
    const counts = { scanned: 0, live: 0, alreadyStaged: 0, candidatesStaged: 0, deleted: 0, cancelledByArbitration: 0 }
    const zero = { ...counts, bytesDeleted: 0, pinsReaped: 0, stagesReclaimed: 0, failed: 0 }
    equal(reported(report), { ...zero, aborted: 'Cancelled', source: undefined }, 'a cancelled sweep does nothing')
    equal(report.cause, reason, 'a cancelled sweep reports why')
  }
})

/** While one sweep asks its sources, another begins: it does nothing at all. */
export const contendedSweep = stepKind<{ by: number; other: number }>({
  name: 'contendedSweep',
  args: () => fc.record({ by: stores, other: stores }),
  canRun: (world, { other }) => world.at(other).holder.sources.length > 0,
  async run(world, { by, other }) {
    const at = world.at(by)
    const contender = world.at(other)
    let second: SweepReport | undefined
    let asked = 0
    const protection = at.store.protect({
      name: 'contender',
      async live() {
        // A second sweep that is let in asks here once more.
        if (++asked === 1) second = await contender.store.sweep()
        return []
      }
    })
    const source = { name: 'contender', kind: 'live-async', contents: new Set<number>(), health: 'well' } as const
    at.holder.sources.push(source)
    const renewed = () => {
      if (second === undefined) return
      const { aborted, scanned, candidatesStaged, deleted } = second
      const expected = { aborted: 'SweeperLock', scanned: 0, candidatesStaged: 0, deleted: 0 }
      equal({ aborted, scanned, candidatesStaged, deleted }, expected, 'a second sweeper finds the lease taken')
    }
    try {
      // Both renew what they hold before they ask for the lease.
      const report = await at.store.sweep()
      renewed()
      if (second !== undefined) contender.holder.renew(world.pool)
      const terms = {
        dryRun: false,
        maxDeletes: Infinity,
        catalogJudges: at.switches.catalogJudges,
        isExecuted: () => true
      }
      equal(reported(report), { ...predictSweep(world.pool, at.holder, terms), failed: 0 }, 'the report of a sweep')
    } finally {
      protection.remove()
      at.holder.sources.splice(at.holder.sources.indexOf(source), 1)
    }
  }
})

export const remove = stepKind<{ by: number; content: number }>({
  name: 'delete',
  args: contents => fc.record({ by: stores, content: contentNumbers(contents) }),
  async run(world, { by, content }) {
    const { store, holder } = world.at(by)
    const attempt = () => store.delete(world.keyOf(content))
    const outcome = predictDelete(world.pool, holder, [content]).get(content)
    if (outcome === 'deleted' || outcome === 'absent') {
      equal(await attempt(), outcome === 'deleted', 'delete tells whether it removed the entry')
      return
    }
    const error = await refuses(attempt, 'ERR_BLOB_GC_REFUSED', `delete refuses what is ${outcome}`)
    equal((error as { reason?: unknown }).reason, outcome, 'a refused delete says why')
  }
})

export const removeMany = stepKind<{ by: number; contents: readonly number[] }>({
  name: 'deleteMany',
  args: contents =>
    fc.record({ by: stores, contents: fc.uniqueArray(contentNumbers(contents), { minLength: 1, maxLength: 4 }) }),
  async run(world, { by, contents }) {
    const { store, holder } = world.at(by)
    const found = await store.deleteMany(contents.map(content => world.keyOf(content)))
    const outcomes: ReadonlyMap<number, DeleteOutcome> = predictDelete(world.pool, holder, contents)
    const expected = new Map([...outcomes].map(([content, outcome]) => [world.keyOf(content), outcome]))
    equal(new Map([...found].sort()), new Map([...expected].sort()), 'deleteMany tells what became of each')
  }
})

export const maintain = stepKind<{ by: number; scan: boolean }>({
  name: 'maintain',
  args: () => fc.record({ by: stores, scan: fc.boolean() }),
  async run(world, { by, scan }) {
    const { pool } = world
    const report = await world.at(by).store.maintain({ scan })
    const reclaimed = pool.exists ? pool.maintain() : { pinsReaped: 0, stagesReclaimed: 0 }
    const { count, bytes } = pool.drop()
    const expected = { ...reclaimed, dropped: count, bytesDropped: bytes, orphans: 0, failed: [] }
    equal(report, expected, 'the report of maintenance')
  }
})

const keysOf = (world: World, contents: readonly number[]) => contents.map(content => world.keyOf(content)).sort()

function verified({ corrupt, dangling, kept, repaired, ...rest }: VerifyReport) {
  return {
    ...rest,
    corrupt: corrupt.map(({ key }) => key).sort(),
    dangling: dangling.map(({ key }) => key).sort(),
    kept: kept.map(({ key, reason }) => `${key} ${reason}`).sort(),
    repaired: [...repaired].sort()
  }
}

export const verify = stepKind<{ by: number; repair: boolean }>({
  name: 'verify',
  args: () => fc.record({ by: stores, repair: fc.boolean() }),
  async run(world, { by, repair }) {
    const { pool } = world
    const { store, holder } = world.at(by)
    const present = pool.present()
    const dangling = present.filter(content => pool.entries.get(content)?.held === undefined)
    const corrupt = present.filter(content => pool.isDamaged(content) && !dangling.includes(content))
    const bytes = present.reduce((sum, content) => sum + pool.lengthOf(content), 0)
    const report = await store.verify({ repair })
    // Each dangling record is removed by a delete of its own.
    const outcomes = repair ? dangling.map(one => [one, predictDelete(pool, holder, [one]).get(one)] as const) : []
    const repaired = outcomes.flatMap(([content, outcome]) => (outcome === 'deleted' ? [content] : []))
    const kept = outcomes.flatMap(([content, outcome]) =>
      outcome === 'deleted' ? [] : [`${world.keyOf(content)} ${outcome}`]
    )
    const expected = {
      entries: present.length,
      bytes,
      corrupt: keysOf(world, corrupt),
      dangling: keysOf(world, dangling),
      orphans: [],
      repaired: keysOf(world, repaired),
      kept: kept.sort(),
      clean: corrupt.length + dangling.length === 0
    }
    equal(verified(report), expected, 'the report of a verification')
  }
})

export const why = stepKind<{ by: number; content: number }>({
  name: 'why',
  args: contents => fc.record({ by: stores, content: contentNumbers(contents) }),
  async run(world, { by, content }) {
    const { store, holder } = world.at(by)
    const { entry, pins, liveBy, window, verdict } = await store.why(world.keyOf(content))
    const found = {
      entry,
      liveBy: [...liveBy].sort(),
      own: pins.filter(({ own }) => own).length,
      others: pins.filter(({ own }) => !own).length,
      window: window && { cancelled: window.cancelled, due: window.dueInMs <= 0 },
      verdict
    }
    equal(found, predictWhy(world.pool, holder, content), 'why explains an entry')
  }
})

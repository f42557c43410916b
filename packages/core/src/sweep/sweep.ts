/**
 * The sweep protocol (docs/spec/sweep.md), as the list of its steps.
 *
 *   durable form   lease, sources, maintenance, execute what earlier sweeps staged, stage, drop
 *   inline form    lease (which opens the epoch), sources, maintenance, stage, execute, drop
 *
 * A durable sweep never executes what it staged itself, because it executes first. An inline one may, because its epoch
 * protects every key that was pinned when it began or was touched since. Both read their sources after the lease.
 */
import { dropTrash, nothingDropped } from '../drop.js'
import type { Lease } from '../engine.js'
import { EngineError } from '../errors.js'
import type { Pins } from '../pins.js'
import type { Pool } from '../pool.js'
import { stageCandidates } from './candidates.js'
import { executeDue } from './execute.js'
import type { LivenessView } from './liveness.js'
import { emptyReport, type SweepOptions, type SweepReport, SweepStop } from './report.js'
import { SweepRun } from './run.js'

export interface SweepParts {
  readonly pool: Pool
  readonly pins: Pins
  /** Undefined where no source is registered: a sweep that cannot know deletes nothing. */
  readonly view: LivenessView | undefined
  readonly options: SweepOptions
  readonly signals: readonly AbortSignal[]
}

type Step = (run: SweepRun) => Promise<void>

const DURABLE: readonly Step[] = [maintain, executeDue, stageCandidates, drop]
const INLINE: readonly Step[] = [maintain, stageCandidates, executeDue, drop]

/** Never rejects for what the protocol foresees: that is in the report. Rejects for failures of a medium. */
export async function sweep(parts: SweepParts): Promise<SweepReport> {
  const startedMs = performance.now()
  const report = emptyReport()
  try {
    await underLease(parts, report, startedMs)
  } catch (error) {
    const stop = stopOf(error, parts.signals)
    report.aborted = stop.aborted
    if (stop.cause !== undefined) report.cause = stop.cause
    if (stop.source !== undefined) report.source = stop.source
  }
  report.durationMs = performance.now() - startedMs
  return report
}

async function underLease(parts: SweepParts, report: SweepReport, startedMs: number): Promise<void> {
  const { pool, pins, view, options, signals } = parts
  for (const signal of signals) signal.throwIfAborted()
  if (view === undefined) throw new SweepStop('NoLivenessSources')
  if (!(await pool.exists())) return
  await pins.flush()
  if (options.dryRun === true) {
    const run = new SweepRun({ pool, lease: undefined, live: await view.ask(), report, options, signals, startedMs })
    return stageCandidates(run)
  }
  await pool.establish()
  await pins.renew()
  const lease = await pool.lease()
  if (lease === undefined) throw new SweepStop('SweeperLock')
  try {
    const live = await view.ask(lease.live && (digests => pool.catalog.loadLive(lease, digests)))
    const run = new SweepRun({ pool, lease, live, report, options, signals, startedMs })
    for (const step of pool.catalog.form === 'inline' ? INLINE : DURABLE) {
      run.assertGoing()
      await step(run)
    }
  } catch (error) {
    throw error instanceof EngineError && (await isLost(pool, lease, error)) ? new SweepStop('LeaseLost', error) : error
  } finally {
    await pool.catalog.releaseLease(lease)
  }
}

/** What could not be reached may be the server as a whole, and the lease has not heard of it yet: then it is asked. */
async function isLost(pool: Pool, lease: Lease, { kind }: EngineError): Promise<boolean> {
  if (!lease.lost.aborted && kind === 'transient') await pool.catalog.due(lease, undefined, 1).catch(heardByTheLease)
  return lease.lost.aborted
}

function heardByTheLease(): void {}

async function maintain({ pool, held, report }: SweepRun): Promise<void> {
  const { pinsReaped, stagesTrashed } = await pool.catalog.maintain(held)
  report.pinsReaped += pinsReaped
  report.stagesReclaimed += stagesTrashed
}

async function drop(run: SweepRun): Promise<void> {
  const dropped = nothingDropped()
  try {
    await dropTrash(run.pool, dropped, () => {
      run.assertGoing()
      return run.hasTime
    })
  } finally {
    run.report.bytesDeleted += dropped.bytes
    run.report.failed.push(...dropped.failed)
  }
}

/** What a stop was, where the protocol foresees it; any other failure goes to the caller. */
function stopOf(error: unknown, signals: readonly AbortSignal[]): SweepStop {
  if (error instanceof SweepStop) return error
  // A table that cannot be trusted to say what it holds is a source that failed.
  if (error instanceof EngineError && error.kind === 'liveness') return new SweepStop('ProtectFailed', error)
  const cancelled = signals.find(signal => signal.aborted)
  if (cancelled !== undefined && error === cancelled.reason) return new SweepStop('Cancelled', error)
  throw error
}

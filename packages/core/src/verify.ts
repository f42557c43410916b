/**
 * Keeping honest: re-derives every entry, and looks for bodies that no record knows. Repair takes only records whose bytes
 * are missing (through arbitration, and only if they still lie where they were missed) and orphans; a damaged entry is
 * reported and never removed, since half a file may be all somebody has.
 */
import { type DeleteOutcome, deleteKeys } from './delete.js'
import type { Derivation } from './derive.js'
import { dropTrashUnderLease } from './drop.js'
import type { Entry } from './engine.js'
import { BlobRemovedError, CorruptBlobError, EngineError } from './errors.js'
import type { BlobKey } from './key.js'
import { PAGE_SIZE } from './limits.js'
import { type Orphan, orphansOf } from './orphans.js'
import type { Pins } from './pins.js'
import type { Pool } from './pool.js'
import { deriveAgain } from './reading.js'
import type { LivenessView } from './sweep/liveness.js'

export interface VerifyOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: { readonly entries: number; readonly bytes: number }) => void
  /** Removes records without bytes and bodies without a record. Default false. */
  readonly repair?: boolean
}

export interface VerifyReport {
  /** Entries looked at, and the bytes their records claim. */
  entries: number
  bytes: number
  /** Entries whose bytes are not those of their key. */
  corrupt: { key: BlobKey; found: string }[]
  /** Records whose bytes are missing. */
  dangling: { key: BlobKey }[]
  /** Bodies that no record knows. */
  orphans: Orphan[]
  /** What repair removed: keys of records, names of bodies. */
  repaired: string[]
  /** Dangling records that repair had to leave, and why; the next put of the content heals them. */
  kept: { key: BlobKey; reason: DeleteOutcome }[]
  /** Whether nothing was found. */
  clean: boolean
}

interface VerifyParts {
  readonly pool: Pool
  readonly pins: Pins
  readonly derivation: Derivation
  readonly view: LivenessView | undefined
  readonly closing: AbortSignal
}

/** Entries read at once: enough to keep disk and hash busy, few enough to stay out of the way. */
const CONCURRENCY = 4

export async function verify(parts: VerifyParts, options: VerifyOptions): Promise<VerifyReport> {
  const report: VerifyReport = {
    entries: 0,
    bytes: 0,
    corrupt: [],
    dangling: [],
    orphans: [],
    repaired: [],
    kept: [],
    clean: false
  }
  // A repair must know that the medium is the pool's before it believes that anything is missing.
  if (options.repair === true && (await parts.pool.exists())) await parts.pool.establish()
  await parts.pool.ready()
  await verifyEntries(parts, options, report)
  if (await parts.pool.exists()) await findOrphans(parts, options, report)
  report.clean = report.corrupt.length + report.dangling.length + report.orphans.length === 0
  return report
}

async function verifyEntries(parts: VerifyParts, options: VerifyOptions, report: VerifyReport): Promise<void> {
  let after: BlobKey | undefined
  for (;;) {
    const page = await parts.pool.catalog.list(after, PAGE_SIZE)
    await eachOf(page, async entry => {
      assertGoing(parts, options)
      await verifyEntry(parts, options, report, entry)
      report.entries++
      report.bytes += entry.length
      options.onProgress?.({ entries: report.entries, bytes: report.bytes })
    })
    if (page.length < PAGE_SIZE) return
    after = page.at(-1)?.key
  }
}

async function verifyEntry(
  parts: VerifyParts,
  options: VerifyOptions,
  report: VerifyReport,
  entry: Entry
): Promise<void> {
  try {
    const { pool, derivation } = parts
    await deriveAgain({ pool, derivation, key: entry.key, assertGoing: () => assertGoing(parts, options) })
  } catch (error) {
    if (error instanceof BlobRemovedError) return
    if (!isDamage(error)) throw error
    if (isMissing(error)) await dangling(parts, options, report, entry)
    else report.corrupt.push({ key: entry.key, found: error.message })
  }
}

/** Whether the entry is damaged, as opposed to the medium failing: one damaged entry must not hide the others. */
function isDamage(error: unknown): error is CorruptBlobError | EngineError {
  return (
    error instanceof CorruptBlobError ||
    (error instanceof EngineError && error.kind === 'corrupt' && error.cause !== undefined)
  )
}

/** Whether the body is not there at all, as opposed to being wrong. */
function isMissing(error: CorruptBlobError | EngineError): boolean {
  return error.cause instanceof EngineError && error.cause.kind === 'gone'
}

async function dangling(parts: VerifyParts, options: VerifyOptions, report: VerifyReport, entry: Entry): Promise<void> {
  const { key, place } = entry
  report.dangling.push({ key })
  if (options.repair !== true || (await isBack(parts, entry))) return
  const outcome = (await deleteKeys(parts, [{ key, at: place }])).outcomes.get(key) as DeleteOutcome
  if (outcome === 'deleted') report.repaired.push(key)
  else report.kept.push({ key, reason: outcome })
}

/** One more look at the body itself, now that the medium is known to be the pool's. */
async function isBack({ pool }: VerifyParts, { key, place }: Entry): Promise<boolean> {
  return place.tier === 'large' && (await pool.bodies.length(place.locator, key)) !== undefined
}

async function findOrphans(parts: VerifyParts, options: VerifyOptions, report: VerifyReport): Promise<void> {
  const repair = options.repair === true
  for await (const orphan of orphansOf(parts.pool, repair)) {
    assertGoing(parts, options)
    report.orphans.push(orphan)
    if (repair) report.repaired.push(orphan.what)
  }
  if (repair && report.orphans.length > 0) await dropTrashUnderLease(parts.pool)
}

function assertGoing({ closing }: VerifyParts, { signal }: VerifyOptions): void {
  signal?.throwIfAborted()
  closing.throwIfAborted()
}

/** Runs a few at a time; the first failure stops the rest from being begun. */
async function eachOf<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  const workers = Array.from({ length: CONCURRENCY }, async () => {
    for (const item of rest) await run(item)
  })
  const settled = await Promise.allSettled(workers)
  for (const worker of settled) if (worker.status === 'rejected') throw worker.reason
}

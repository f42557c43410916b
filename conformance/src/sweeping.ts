/** What rows say about sweeps: exact counts, read relative to the form of the store. */
import type { Store, SweepOptions, SweepReport } from '@alkblobs/core'
import { equal, holds } from './expect.js'

/** The counts of a report that a row states; what is left out must be zero. */
export interface SweepCounts {
  readonly scanned: number
  readonly live: number
  readonly alreadyStaged: number
  readonly candidatesStaged: number
  readonly deleted: number
  readonly cancelledByArbitration: number
  readonly bytesDeleted: number
}

const ZERO: SweepCounts = {
  scanned: 0,
  live: 0,
  alreadyStaged: 0,
  candidatesStaged: 0,
  deleted: 0,
  cancelledByArbitration: 0,
  bytesDeleted: 0
}

/** The counts of a report, alone. */
export function countsOf(report: SweepReport): SweepCounts {
  const { scanned, live, alreadyStaged, candidatesStaged, deleted, cancelledByArbitration, bytesDeleted } = report
  return { scanned, live, alreadyStaged, candidatesStaged, deleted, cancelledByArbitration, bytesDeleted }
}

/** Fails unless the report is complete, without failures, and holds exactly these counts. `scanned` follows from its parts. */
export function expectCounts(
  report: SweepReport,
  expected: Partial<Omit<SweepCounts, 'scanned'>>,
  property: string
): void {
  if (report.aborted !== undefined)
    equal({ aborted: report.aborted, cause: report.cause }, { aborted: undefined }, property)
  equal(report.failed, [], `${property} (no drop failed)`)
  const counts = { ...ZERO, ...expected }
  const scanned = counts.live + counts.alreadyStaged + counts.candidatesStaged
  equal(countsOf(report), { ...counts, scanned }, property)
}

/** Fails unless the sweep was aborted for that reason and did nothing at all. */
export function expectAborted(report: SweepReport, reason: SweepReport['aborted'], property: string): void {
  equal(report.aborted, reason, property)
  equal(countsOf(report), ZERO, `${property} (every count is zero)`)
  equal({ pinsReaped: report.pinsReaped, failed: report.failed }, { pinsReaped: 0, failed: [] }, property)
}

/** How a whole collection went: what was staged, and what became of it, in one sweep (inline) or two (durable). */
export interface Collection {
  readonly staged: number
  readonly deleted: number
  readonly cancelled: number
  readonly bytesDeleted: number
}

/** Runs a collection from staging to removal: one sweep on an inline store, two on a durable one. */
export async function collect(store: Store, options?: SweepOptions): Promise<Collection> {
  const staging = await store.sweep(options)
  equal(staging.aborted, undefined, 'a sweep with a healthy source runs to its end')
  const executing = store.form === 'durable' ? await store.sweep(options) : staging
  equal(executing.aborted, undefined, 'a sweep with a healthy source runs to its end')
  return {
    staged: staging.candidatesStaged,
    deleted: executing.deleted,
    cancelled: executing.cancelledByArbitration,
    bytesDeleted: executing.bytesDeleted
  }
}

/** Collects, and fails unless exactly `entries` entries and `bytes` bytes went, and nothing was cancelled. */
export async function expectCollected(store: Store, entries: number, bytes: number, property: string): Promise<void> {
  const collection = await collect(store)
  equal(collection, { staged: entries, deleted: entries, cancelled: 0, bytesDeleted: bytes }, property)
}

/** A liveness source over a set that the row changes as it goes. */
export function sourceOver(keys: Iterable<string>, name = 'references') {
  return { name, live: () => keys }
}

/** Puts without keeping the pin: what the store holds afterwards is an entry nobody protects. */
export async function putReleased(store: Store, content: Uint8Array) {
  const receipt = await store.put(content)
  await receipt.release()
  return receipt
}

/**
 * Waits until every release of this instance has reached the medium. A release resolves when the instance no longer counts
 * the pin; the row ends before a delete of its own begins, also a delete of what is not there.
 */
export async function releasesArrived(store: Store): Promise<void> {
  await store.delete(`${store.algorithm}:${'00'.repeat(32)}`)
}

/** Fails unless the store reports nothing but entries: no pin, window row, stage or trash. */
export async function expectNoResidue(store: Store, property: string): Promise<void> {
  await releasesArrived(store)
  const { pins, window, stages, trash } = await store.usage()
  equal({ pins, window, stages, trash }, { pins: 0, window: 0, stages: 0, trash: 0 }, property)
}

/** Fails unless exactly these many entries are in the pool. */
export async function expectEntries(store: Store, entries: number, property: string): Promise<void> {
  const usage = await store.usage()
  holds(usage.entries === entries, property, `${usage.entries} entries, not ${entries}`)
}

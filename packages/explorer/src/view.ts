/** A medium as the invariants see it, whatever engine keeps it. */
import type { BlobKey, Entry, Locator, Owner, PoolRecord, StageId } from '@alkblobs/core/engine'
import { createMedium, type MemMedium } from '@alkblobs/engine-mem'
import { type DurableMedium, rowsOf } from './durable/medium.js'

export interface View {
  entry(key: BlobKey): { readonly entry: Entry; readonly body?: Uint8Array } | undefined
  keys(): readonly BlobKey[]
  /** Owners of pins that protect the key now. */
  pinnedBy(key: BlobKey): readonly Owner[]
  stages(): readonly StageId[]
  trash(): readonly (Locator | StageId)[]
  counts(): { readonly pins: number; readonly window: number; readonly marks: number }
  /** Everything that is kept, in one text. */
  dump(): string
}

export function viewOfDurable(medium: DurableMedium, nowMs: () => number): View {
  return {
    entry: key => medium.entries.get(key),
    keys: () => [...medium.entries.keys()],
    pinnedBy: key => medium.pinnedBy(key, nowMs()),
    stages: () => [...medium.stages.keys()],
    trash: () => [...medium.trash.keys()],
    counts: () => ({ pins: medium.pins.size, window: medium.window.size, marks: medium.marks.size }),
    dump: () => medium.dump()
  }
}

/** What engine-mem keeps; its medium is opaque to its users, and this is no user but a look from outside. */
export interface MemRows {
  record: PoolRecord | undefined
  readonly entries: Map<BlobKey, { readonly entry: Entry; readonly body?: Uint8Array }>
  readonly pins: Map<BlobKey, Map<Owner, number>>
  readonly window: Map<BlobKey, { readonly sequence: number; readonly stagedAt: number; cancelled: boolean }>
  readonly marks: Map<BlobKey, Map<string, { cancelled: boolean }>>
  readonly stages: Map<StageId, number>
  readonly trash: Map<Locator | StageId, { readonly droppableAt: number }>
  held: { readonly epoch: Set<BlobKey> } | undefined
  rows: number
}

export function rowsOfMem(medium: MemMedium): MemRows {
  const rows: unknown = medium
  if (!isMemRows(rows)) throw new Error('engine-mem keeps something else than the explorer knows')
  return rows
}

function isMemRows(rows: unknown): rows is MemRows {
  const isMap = (name: string) => Reflect.get(rows as object, name) instanceof Map
  return ['entries', 'pins', 'window', 'marks', 'stages', 'trash'].every(isMap)
}

/** A copy for the next schedule, of a medium that nobody has open. */
export function copyOfMem(medium: MemMedium): MemMedium {
  const [copy, from] = [createMedium(), rowsOfMem(medium)]
  const to = rowsOfMem(copy)
  to.record = from.record
  to.rows = from.rows
  for (const [key, row] of from.entries) to.entries.set(key, row)
  for (const [key, row] of from.window) to.window.set(key, { ...row })
  for (const [stage, expiry] of from.stages) to.stages.set(stage, expiry)
  for (const [what, row] of from.trash) to.trash.set(what, row)
  if (from.pins.size + from.marks.size > 0 || from.held !== undefined) throw new Error('somebody still has it open')
  return copy
}

export function viewOfMem(medium: MemMedium): View {
  const rows = rowsOfMem(medium)
  const { entries, pins, window, marks, stages, trash } = rows
  return {
    entry: key => entries.get(key),
    keys: () => [...entries.keys()],
    pinnedBy: key => [...(pins.get(key)?.keys() ?? [])],
    stages: () => [...stages.keys()],
    trash: () => [...trash.keys()],
    counts: () => ({ pins: pins.size, window: window.size, marks: marks.size }),
    dump: () =>
      JSON.stringify([
        rowsOf(entries, ({ entry, body }) => [entry.length, entry.place, body?.length]),
        rowsOf(pins, owners => rowsOf(owners)),
        [...window].map(([key, { cancelled }]) => [key, cancelled]),
        rowsOf(marks, each => rowsOf(each)),
        rowsOf(stages),
        rowsOf(trash, ({ droppableAt }) => droppableAt),
        rows.record?.bodiesClaimed,
        rows.held && [...rows.held.epoch].sort()
      ])
  }
}

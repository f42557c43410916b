/**
 * Looks into the memory of a mem pool. There is no connection to open to it, so the oracle reads the maps of the medium
 * itself, through the slice of their shape that it needs.
 */
import type { BlobKey } from '@alkblobs/core'
import type { MemMedium } from '@alkblobs/engine-mem'
import { damagedBytes } from './damage.js'
import type { OraclePart } from './part.js'

interface Stored {
  readonly entry: { readonly place: { readonly tier: 'kv' | 'large'; readonly length?: number } }
  readonly body?: Uint8Array
}
interface Slice {
  readonly record: unknown
  readonly entries: {
    get(key: BlobKey): Stored | undefined
    set(key: BlobKey, stored: Stored): unknown
    after?: unknown
  }
  readonly pins: ReadonlyMap<BlobKey, ReadonlyMap<string, { expiresAt: number }>>
  readonly window: { readonly size: number; values(): Iterable<{ stagedAt: number }> }
  readonly stages: { readonly size: number }
  readonly trash: { readonly size: number }
}

/** Every stored entry, whatever kind of map keeps them. */
function storedOf(entries: Slice['entries']): readonly Stored[] {
  const values = (entries as unknown as { values(): Iterable<Stored> }).values()
  return [...values]
}

/** The part of an oracle that looks at a mem medium. */
export function memoryPart(medium: MemMedium): OraclePart {
  const slice = medium as unknown as Slice
  return {
    async counts() {
      return {
        inlineEntries: storedOf(slice.entries).filter(({ entry }) => entry.place.tier === 'kv').length,
        stages: slice.stages.size,
        trash: slice.trash.size,
        window: slice.window.size,
        pins: [...slice.pins.values()].reduce((total, owners) => total + owners.size, 0)
      }
    },
    // Memory is nobody's folder: only a pool record counts as something that was created.
    exists: async () => slice.record !== undefined,
    async age(byMs) {
      for (const row of slice.window.values()) row.stagedAt -= byMs
      for (const owners of slice.pins.values()) for (const pin of owners.values()) pin.expiresAt -= byMs
    },
    async expirePins(key) {
      for (const [pinned, owners] of slice.pins) {
        if (key === undefined || key === pinned) for (const pin of owners.values()) pin.expiresAt = 0
      }
    },
    async corrupt(key, how) {
      const stored = slice.entries.get(key)
      if (stored?.body === undefined) return false
      const body = damagedBytes(stored.body, how)
      slice.entries.set(key, {
        ...stored,
        body,
        entry: { ...stored.entry, place: { tier: 'kv', length: body.length } }
      })
      return true
    }
  }
}

/** An oracle is put together from parts, one for each engine of a column; the parts add up. */
import type { Damage, MediumCounts, MediumOracle } from '@alkblobs/conformance'
import type { BlobKey } from '@alkblobs/core'

/** What one engine's medium can tell and suffer. `corrupt` answers whether the body was there. */
export interface OraclePart extends Omit<MediumOracle, 'counts' | 'corrupt'> {
  counts(): Promise<Partial<MediumCounts>>
  corrupt?(key: BlobKey, how: Damage): Promise<boolean>
}

const NOTHING: MediumCounts = { inlineEntries: 0, bodies: 0, stages: 0, trash: 0, window: 0, pins: 0 }

/** Adds the counts of every part. */
function sum(all: readonly Partial<MediumCounts>[]): MediumCounts {
  const names = Object.keys(NOTHING) as (keyof MediumCounts)[]
  return Object.fromEntries(
    names.map(name => [name, all.reduce((total, counts) => total + (counts[name] ?? 0), 0)])
  ) as unknown as MediumCounts
}

/** One oracle over the media of a column. */
export function oracleOver(parts: readonly OraclePart[]): MediumOracle {
  const each = async (act: (part: OraclePart) => Promise<unknown> | undefined) => {
    for (const part of parts) await act(part)
  }
  const linking = parts.find(part => part.linkOut !== undefined)
  const large = parts.find(part => part.largeTables !== undefined)
  const pins = parts.find(part => part.pinRows !== undefined)
  const sql = parts.find(part => part.application !== undefined)
  return {
    counts: async () => sum(await Promise.all(parts.map(part => part.counts()))),
    exists: async () => (await Promise.all(parts.map(part => part.exists()))).some(Boolean),
    age: byMs => each(part => part.age?.(byMs)),
    expirePins: (key, owner) => each(part => part.expirePins?.(key, owner)),
    async corrupt(key, how) {
      for (const part of parts) if (await part.corrupt?.(key, how)) return
      throw new Error(`no medium holds the body of ${key}`)
    },
    refuse: length => each(part => part.refuse?.(length)),
    async handles() {
      const open = await Promise.all(parts.map(async part => (await part.handles?.()) ?? 0))
      return open.reduce((total, count) => total + count, 0)
    },
    ...(large?.largeTables === undefined ? {} : { largeTables: large.largeTables }),
    ...(linking?.linkOut === undefined ? {} : { linkOut: linking.linkOut }),
    ...(pins?.pinRows === undefined ? {} : { pinRows: pins.pinRows }),
    ...(pins?.refusePins === undefined ? {} : { refusePins: pins.refusePins }),
    ...(sql?.application === undefined ? {} : { application: sql.application }),
    ...(sql?.pinInTransaction === undefined ? {} : { pinInTransaction: sql.pinInTransaction }),
    ...(sql?.transaction === undefined ? {} : { transaction: sql.transaction }),
    removeEmptyFolders: () => each(part => part.removeEmptyFolders?.())
  }
}

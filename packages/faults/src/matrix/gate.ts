/**
 * The gate: what was armed has struck, and every square of the matrix that the media make necessary was struck at least once. It
 * derives the squares; nobody lists exceptions.
 */
import type { Cell, FaultRecord } from '../ledger.js'
import { type ContestedSurfaces, REQUIRED } from '../surfaces.js'
import type { Records } from './records.js'

export interface CellCount extends Cell {
  /** Faults that were finished there. */
  readonly executed: number
  readonly fired: number
}

export interface FaultReport {
  readonly armed: number
  readonly fired: number
  readonly executed: number
  readonly surfaces: readonly CellCount[]
  readonly missing: readonly Cell[]
}

export interface Judgement {
  readonly report: FaultReport
  /** One line for each thing that is wrong; empty if the gate is open. */
  readonly failures: readonly string[]
}

/** Which media are judged. Where a machine has no server, what needs one is named and not judged, unless it is required. */
export interface Judged {
  readonly surfaces: ContestedSurfaces
  /** Why there is no server; absent if there is one, or if that is no excuse. */
  readonly noServer?: string
}

export function judge(
  { records, doubts }: Pick<Records, 'records' | 'doubts'>,
  { surfaces, noServer }: Judged
): Judgement {
  const counts = countCells(records)
  const missing = requiredCells(surfaces, noServer !== undefined).filter(cell => !counts.has(nameOf(cell)))
  const fired = records.filter(each => each.fired).length
  const report: FaultReport = {
    armed: records.length,
    fired,
    executed: fired,
    surfaces: [...counts.values()].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)),
    missing
  }
  const unfired = records.filter(each => !each.fired).map(({ what }) => `an armed fault did not fire: ${what}`)
  const failures = [
    ...doubts,
    ...(fired === 0 ? ['no fault was executed'] : []),
    ...unfired,
    ...missing.map(cell => `no fault struck ${nameOf(cell)}`)
  ]
  return { report, failures }
}

/** Every square that the engines' media make necessary. */
export function requiredCells({ engines, surfaces }: ContestedSurfaces, isWithoutServer = false): Cell[] {
  return Object.entries(engines).flatMap(([engine, { medium, parts }]) => {
    if (medium === 'server' && isWithoutServer) return []
    return Object.entries(surfaces)
      .filter(([, surface]) => surface.parts.some(part => parts.includes(part)))
      .flatMap(([surface]) =>
        REQUIRED[medium].map(({ layer, leg }) => ({ surface, engine, layer, ...(leg && { leg }) }))
      )
  })
}

/** A square as one line says it. */
export function nameOf({ surface, engine, layer, leg }: Cell): string {
  return `${surface} of ${engine} at ${layer}${leg === undefined ? '' : ` ${leg}`}`
}

function countCells(records: readonly FaultRecord[]): Map<string, CellCount> {
  const counts = new Map<string, CellCount>()
  for (const { cells, fired } of records) {
    for (const cell of cells) {
      const { surface, engine, layer, leg } = cell
      const name = nameOf(cell)
      const before = counts.get(name) ?? { surface, engine, layer, ...(leg && { leg }), executed: 0, fired: 0 }
      counts.set(name, { ...before, executed: before.executed + 1, fired: before.fired + (fired ? 1 : 0) })
    }
  }
  return counts
}

/**
 * The surfaces that a fault can strike, as `contested-surfaces.json` lists them, and the squares of the matrix that follow from them.
 *
 * | surface | struck by a fault at |
 * |---|---|
 * | a method of the contract, `catalog.publish` | that method |
 * | an operation of the facade, `store.put` | any method, while that operation is under way |
 * | a step of one, `put.publish` | the methods it names, while one of the operations it names is under way |
 */
import { readFileSync } from 'node:fs'
import type { Layer, Leg } from './ledger.js'
import type { FaultPoint } from './points.js'

export interface Surface {
  /** The parts of an engine that it concerns; an engine that has one of them must cover it. */
  readonly parts: readonly string[]
  /** The operations of the facade under which it is struck; any if left out. */
  readonly during?: readonly string[]
  /** The methods of the contract at which it is struck; any if left out. */
  readonly at?: readonly FaultPoint[]
}

export type Medium = 'memory' | 'files' | 'server'

export interface EngineRow {
  readonly medium: Medium
  /** What the engine offers, in the words of `partsOf`. */
  readonly parts: readonly string[]
}

export interface ContestedSurfaces {
  readonly engines: Readonly<Record<string, EngineRow>>
  readonly surfaces: Readonly<Record<string, Surface>>
}

// One folder above this file, in the sources as in the package.
const file = new URL('../contested-surfaces.json', import.meta.url)

/** The list of this package. */
export const contestedSurfaces = JSON.parse(readFileSync(file, 'utf8')) as ContestedSurfaces

/** The names of the surfaces that a fault at this method strikes. */
export function surfacesAt(point: FaultPoint, operation: string | undefined): string[] {
  return Object.entries(contestedSurfaces.surfaces)
    .filter(([, { at, during }]) => {
      const fitsPoint = at === undefined || at.includes(point)
      const fitsOperation = during === undefined || (operation !== undefined && during.includes(operation))
      return fitsPoint && fitsOperation && (at !== undefined || during !== undefined)
    })
    .map(([name]) => name)
}

export interface Requirement {
  readonly layer: Layer
  readonly leg?: Leg
}

/** What the medium makes necessary. A connection can end in two ways, and the layers below the connection can show both. */
export const REQUIRED: Readonly<Record<Medium, readonly Requirement[]>> = {
  memory: [{ layer: 'injector' }],
  files: [{ layer: 'injector' }, { layer: 'L3' }],
  server: [
    { layer: 'injector' },
    { layer: 'L1', leg: 'graceful' },
    { layer: 'L2', leg: 'graceful' },
    { layer: 'L2', leg: 'torn' },
    { layer: 'L3' }
  ]
}

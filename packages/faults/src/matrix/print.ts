/** The matrix as lines of text: surfaces by engines and layers. */
import type { Layer, Leg } from '../ledger.js'
import { type ContestedSurfaces, REQUIRED } from '../surfaces.js'
import { type FaultReport, nameOf } from './gate.js'

interface Column {
  readonly engine: string
  readonly layer: Layer
  readonly leg?: Leg
}

const SHORT: Readonly<Record<string, string>> = {
  injector: 'inj',
  'L1 graceful': 'L1',
  'L2 graceful': 'L2g',
  'L2 torn': 'L2t',
  L3: 'L3'
}
const WIDTH = 5

/** A number: faults that struck there. A dash: not asked for. Exclamation marks: missing. */
export function matrixLines(report: FaultReport, { engines, surfaces }: ContestedSurfaces): string[] {
  const columns: Column[] = Object.entries(engines).flatMap(([engine, { medium }]) =>
    REQUIRED[medium].map(({ layer, leg }) => ({ engine, layer, ...(leg && { leg }) }))
  )
  const fired = new Map(report.surfaces.map(cell => [nameOf(cell), cell.fired]))
  const missing = new Set(report.missing.map(nameOf))
  const nameWidth = Math.max(...Object.keys(surfaces).map(name => name.length)) + 1
  const heads = [
    ' '.repeat(nameWidth) +
      columns
        .map(({ engine }, at) => (columns[at - 1]?.engine === engine ? '' : engine).slice(0, 9))
        .map((text, at) => pad(text, columns, at))
        .join(''),
    ' '.repeat(nameWidth) +
      columns.map(({ layer, leg }) => (SHORT[leg ? `${layer} ${leg}` : layer] ?? layer).padEnd(WIDTH)).join('')
  ]
  const rows = Object.keys(surfaces).map(surface => {
    const cells = columns.map(column => {
      const name = nameOf({ ...column, surface })
      return (missing.has(name) ? '!!' : `${fired.get(name) ?? '-'}`).padEnd(WIDTH)
    })
    return `${surface.padEnd(nameWidth)}${cells.join('')}`.trimEnd()
  })
  return [...heads.map(line => line.trimEnd()), ...rows]
}

/** An engine's name may reach over its further columns. */
function pad(text: string, columns: readonly Column[], at: number): string {
  const isAlone = columns.filter(({ engine }) => engine === columns[at]?.engine).length === 1
  return isAlone
    ? text.slice(0, WIDTH - 1).padEnd(WIDTH)
    : text === ''
      ? ' '.repeat(WIDTH)
      : text.slice(0, WIDTH).padEnd(WIDTH)
}

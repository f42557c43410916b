/** How the lists are written: one configuration a line, what differs from the usual named. */
import { type Configuration, type Event, type Instance, LONG_MS, type Operation } from '../configuration.js'
import { pin, put, sweep } from '../operations.js'

export const MINUTE_MS = 60_000

export const refers = { refers: true } as const

export interface Listed extends Configuration {
  /** Too large for every run. */
  readonly isLong: boolean
}

/** One sequence of operations, after its instance. */
export type Plan = readonly [on: Instance, ...does: Operation[]]

/** A configuration of the durable form over an entry that a sweep has staged, unless said otherwise. */
export function one(name: string, plans: readonly Plan[], more: Partial<Listed> = {}): Listed {
  const actors = plans.map(([on, ...does]) => ({ on, does }))
  return { name, form: 'durable', before: [put('K1'), sweep()], actors, isLong: false, ...more }
}

export const created = { before: [put('K1')] }
export const empty = { before: [] }
export const large = { large: true }
export const inline = { form: 'inline', before: [put('K1')] } as const
export const crashOf = (of: Instance): Event => ({ kind: 'crash', of })
export const pause: Event = { kind: 'pause', ms: LONG_MS }
export const missed: Event = { kind: 'deadline missed', of: 'A' }
export const lost: Event = { kind: 'lease lost' }
export const streamed = put('K1', { refers: true, streams: true })
export const handover = pin('K1', refers)

/** What comes from outside, and takes from puts what they need. */
export function under(...events: Event[]): Partial<Listed> {
  return { events, mayFail: true }
}

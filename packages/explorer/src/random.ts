/** Schedules chosen by a seed, over configurations made from it: larger than what a search can walk to its end. */
import { surround } from './ambient.js'
import type { Configuration, Content, Event, Instance, Operation } from './configuration.js'
import { CONTENTS, LAPSE_MS, LONG_MS } from './configuration.js'
import { forget, maintain, pin, put, remove, renew, repair, sweep } from './operations.js'
import { Run } from './run.js'
import { walk } from './schedule.js'
import type { Failure } from './search.js'
import { idOf, replay } from './story.js'

/** Whole numbers below `bound`, the same for the same seed (mulberry32). */
export type Draw = (bound: number) => number

export function drawOf(seed: number): Draw {
  let state = seed >>> 0
  return bound => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

/** `random <seed>`: the name says it all. */
export function randomConfiguration(seed: number): Configuration {
  const draw = drawOf(seed)
  const form = draw(3) === 0 ? 'inline' : 'durable'
  const events = form === 'durable' && draw(2) === 0 ? [EVENTS[draw(EVENTS.length)] as Event] : []
  const instances: readonly Instance[] = ['A', 'B', 'C']
  const actors = instances.map(on => ({ on, does: Array.from({ length: 2 + draw(3) }, () => operation(draw)) }))
  // Now and then two sequences share an instance, and one of them is its renewal.
  if (draw(3) === 0) actors.push({ on: 'A', does: [renew(), operation(draw)] })
  const before: Operation[] = CONTENTS.filter(() => draw(2) === 0).map(content => put(content))
  if (draw(2) === 0) before.push(sweep())
  const large = draw(2) === 0
  const fleet = form === 'durable' && draw(2) === 0
  return { name: `random ${seed}`, form, large, fleet, before, actors, events, mayFail: events.length > 0 }
}

const EVENTS: readonly Event[] = [
  { kind: 'crash', of: 'A' },
  { kind: 'crash', of: 'B' },
  { kind: 'pause', ms: LONG_MS },
  { kind: 'pause', ms: LAPSE_MS },
  { kind: 'lease lost' },
  { kind: 'deadline missed', of: 'A' }
]

function operation(draw: Draw): Operation {
  const content = CONTENTS[draw(CONTENTS.length)] as Content
  const how = { refers: draw(2) === 0, keeps: draw(5) === 0, streams: draw(2) === 0 }
  const all: readonly (() => Operation)[] = [
    () => put(content, how),
    () => put(content, how),
    () => pin(content, how),
    () => pin(content, how),
    () => remove(content),
    () => sweep(),
    () => sweep(),
    () => forget(content),
    () => maintain(),
    () => repair()
  ]
  return (all[draw(all.length)] as () => Operation)()
}

export interface Sampled {
  readonly schedules: number
  readonly steps: number
  readonly failure: Failure | undefined
}

/** Walks so many schedules of a configuration, chosen by the seed. Ends with the first that fails. */
export async function sample(configuration: Configuration, seed: number, schedules: number): Promise<Sampled> {
  const restore = surround()
  try {
    const prepared = await Run.prepare(configuration)
    const draw = drawOf(seed)
    let steps = 0
    for (let n = 1; n <= schedules; n++) {
      const run = await Run.begin(prepared, configuration)
      const choices: number[] = []
      const { depth } = await walk(run, waiting => {
        const choice = waiting.length === 0 ? 0 : draw(waiting.length)
        choices.push(choice)
        return choice
      })
      steps += depth
      if (run.world.violations.length === 0) continue
      return { schedules: n, steps, failure: await replay(prepared, configuration, idOf(configuration, choices)) }
    }
    return { schedules, steps, failure: undefined }
  } finally {
    restore()
  }
}

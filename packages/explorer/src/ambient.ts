/**
 * What core and the engine in memory take from the process around them, replaced while a search runs: both clocks, timers,
 * randomness, and the end of forgotten objects. So a schedule is a function of the choices made in it, and nothing happens that
 * the scheduler did not choose; and the shipped code needs no hook for it.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/** The world that is being explored. */
export interface Surroundings {
  readonly clockMs: number
  /** Bytes that no other call of any instance gets, the same in every schedule in which the instance did the same before. */
  unique(length: number): Buffer
  timeout(fire: () => void, ms: number): Timer
  interval(fire: () => void, ms: number): Timer
}

/** Stands in for `NodeJS.Timeout`. */
export interface Timer {
  unref(): Timer
  ref(): Timer
  refresh(): Timer
  cancel(): void
}

let now: Surroundings | undefined

/** Whose surroundings the code that runs from now on has. */
export function enter(world: Surroundings): void {
  now = world
}

/** Replaces the surroundings until the answer is called. Searches do not nest, and one process makes one at a time. */
export function surround(): () => void {
  if (now !== undefined) throw new Error('another search is under way in this process')
  const kept = { performanceNow: performance.now, dateNow: Date.now, ...timers(), registry: FinalizationRegistry }
  const { randomBytes, randomUUID } = crypto
  performance.now = () => now?.clockMs ?? kept.performanceNow.call(performance)
  Date.now = () => now?.clockMs ?? kept.dateNow()
  const cancel = (timer: unknown) => (timer as Timer | undefined)?.cancel()
  Object.assign(globalThis, {
    setTimeout: (fire: () => void, ms: number) => world().timeout(fire, ms),
    setInterval: (fire: () => void, ms: number) => world().interval(fire, ms),
    clearTimeout: cancel,
    clearInterval: cancel,
    // A receipt that became unreachable with an abandoned schedule must not act in the next one.
    FinalizationRegistry: ForgetsEverything
  })
  Object.assign(crypto, {
    randomBytes: (length: number) => world().unique(length),
    randomUUID: () => world().unique(16).toString('hex')
  })
  syncBuiltinESMExports()
  return () => {
    now = undefined
    performance.now = kept.performanceNow
    Date.now = kept.dateNow
    const { setTimeout, setInterval, clearTimeout, clearInterval } = kept
    Object.assign(globalThis, {
      setTimeout,
      setInterval,
      clearTimeout,
      clearInterval,
      FinalizationRegistry: kept.registry
    })
    Object.assign(crypto, { randomBytes, randomUUID })
    syncBuiltinESMExports()
  }
}

function timers() {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
  return { setTimeout, setInterval, clearTimeout, clearInterval }
}

function world(): Surroundings {
  if (now === undefined) throw new Error('no world is being explored')
  return now
}

class ForgetsEverything {
  register(): void {}
  unregister(): boolean {
    return false
  }
}

const immediate = setImmediate

/**
 * Resolves when everything that the last step set in motion has come to rest. Whatever runs between two steps waits for
 * nothing but promises, so the next turn of the event loop finds it done.
 */
export function rest(): Promise<void> {
  return new Promise(resolve => immediate(resolve))
}

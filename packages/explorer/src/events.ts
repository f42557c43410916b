/** What happens to a pool and its instances from outside, each as a step that may be chosen at any time. */
import type { Event } from './configuration.js'
import type { Footprint } from './footprint.js'
import type { Run } from './run.js'

const EVERYTHING: Footprint = { writes: ['*'] }

export function happen(run: Run, event: Event, n: number): Promise<void> {
  const { world, pool } = run
  // The environment's events are of nobody: two of them are independent only if what they touch is.
  const who = `${n}!`
  if (event.kind === 'crash') {
    return world.happening(event.of, `crash of ${event.of}`, { writes: ['lease'] }, () => run.crashed(event.of))
  }
  if (event.kind === 'deadline missed') {
    return world.happening(event.of, `${event.of} waits no longer`, EVERYTHING, () => {
      world.clockMs += 31_000
      world.tick(event.of, 'short')
    })
  }
  if (event.kind === 'pause') {
    return world.happening(who, `${event.ms / 60_000} minutes pass`, EVERYTHING, () => {
      world.clockMs += event.ms
    })
  }
  if (event.kind === 'lease lost') {
    return world.happening(who, 'the lease is lost', { writes: ['lease'] }, () => {
      if (pool.durable !== undefined) pool.durable.lock = undefined
    })
  }
  return world.happening(who, 'every large body vanishes', { writes: ['body'] }, () => {
    run.invariants.vanished(pool.bodies.sealed.keys())
    pool.bodies.sealed.clear()
  })
}

// Every call that the facade makes of memory fails once, and for good, before its effect and after it.
import { openStore } from '@alkblobs/core'
import {
  assertWhole,
  everyFailureOf,
  FaultPlan,
  faulty,
  memoryError,
  type Subject,
  steps,
  World
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { describe, expect, it } from 'vitest'
import { createMedium, mem } from '../../src/index.js'

const THRESHOLD = 100

/** The maps of a pool in memory, through the slice of their shape that is looked at here. */
interface Maps {
  readonly stages: ReadonlyMap<unknown, unknown>
  readonly trash: { readonly size: number }
  readonly window: ReadonlyMap<unknown, unknown>
  readonly pins: Map<unknown, unknown>
}

function subject(): Subject {
  const medium = createMedium()
  const maps = medium as unknown as Maps
  return {
    open: wrap =>
      openStore({
        kv: wrap(mem({ medium })),
        threshold: THRESHOLD,
        windowDelayMs: 0,
        trashDelayMs: 0,
        operationTimeoutMs: 500
      }),
    threshold: THRESHOLD,
    hasBodies: false,
    // A pin of memory ends with its process; here the memory outlives its stores, so the end is played.
    expire: async () => maps.pins.clear(),
    residue: async () => ({
      stages: maps.stages.size,
      trash: maps.trash.size,
      window: maps.window.size,
      pins: maps.pins.size
    })
  }
}

describe.each(['before', 'after'] as const)('a failure %s the effect of a call', when => {
  it.each(['once', 'for good'] as const)('%s is typed, loses nothing and leaves nothing', async lasting => {
    const plan = new FaultPlan()
    const world = new World(subject(), definition => faulty(definition, plan))
    const how = { kind: 'fail', error: () => memoryError() } as const
    const struck = []
    for (const step of steps) struck.push(...(await everyFailureOf(world, step, { plan, when, lasting, how })))
    await assertWhole(world)
    expect(struck.length).toBeGreaterThan(steps.length)
    await world.close()
  })
})

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

function subject(): Subject {
  const medium = createMedium()
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
    expire: async () => {},
    residue: async () => ({
      stages: medium.stages.size,
      trash: medium.trash.size,
      window: medium.window.size,
      pins: medium.pins.size
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

// What the engine offers, what its `classify` knows, and every method of its contract failing once.
import { type Algorithm, type Lease, parseKey } from '@alkblobs/core/engine'
import { contestedSurfaces, everyFailure, FaultPlan, faulty, fullDisk, memoryError, partsOf } from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { expect, it } from 'vitest'
import { mem } from '../../src/index.js'

const context = { algorithm: 'sha256' as Algorithm, lockTimeoutMs: 1_000, connectTimeoutMs: 1_000 }
const call = { deadlineMs: Number.POSITIVE_INFINITY }

it('offers what the list of surfaces says of it', async () => {
  const engine = await mem().open(context)
  expect(partsOf(engine)).toEqual(contestedSurfaces.engines.mem?.parts)
  await engine.close()
})

it('knows what memory throws that is full', async () => {
  const engine = await mem().open(context)
  expect(engine.classify(fullDisk('memory'))).toBe('full')
  await engine.close()
})

// Pins of memory alone need no renewal and its stages no second look, so no facade calls these; whoever does gets the error.
it('fails each method that the facade of memory alone never calls', async () => {
  const plan = new FaultPlan()
  const { catalog, classify, close } = await faulty(mem(), plan).open(context)
  if (catalog === undefined) throw new Error('memory is a catalog')
  const key = parseKey(`sha256:${'0'.repeat(64)}`, 'sha256')
  const lease = (await catalog.lease(call)) as Lease
  const calls = [
    () => catalog.find([key], call),
    () => catalog.stage([{ id: '0'.repeat(32) as never, ttlMs: 1 }], call),
    () => catalog.staged(['0'.repeat(32) as never], call),
    () => catalog.unstage(['0'.repeat(32) as never], call),
    () => catalog.renew({ pins: [], pinTtlMs: 1, stages: [], stageTtlMs: 1, revive: false }, call),
    () => catalog.known([], call),
    () => catalog.discard([], call),
    () => catalog.dropped([], call),
    () => catalog.trash(undefined, 1, call),
    () => lease.release()
  ]
  const strikes = await everyFailure({ plan, how: { kind: 'fail', error: () => memoryError() } }, async () => {
    for (const each of calls) {
      const error = await each().then(
        () => undefined,
        (thrown: unknown) => thrown
      )
      if (error !== undefined) expect(classify(error)).toBe('full')
    }
  })
  expect(strikes).toHaveLength(calls.length)
  await close()
})

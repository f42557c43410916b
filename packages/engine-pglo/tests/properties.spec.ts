// Any body, in any chunks, of any length around a window or two, comes back in any range; and what is not sealed leaves nothing.
import { runBodiesModel } from '@alkblobs/conformance/model'
import type { BodyStore } from '@alkblobs/core/engine'
import { freshDatabase } from '@alkblobs/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { pglo } from '../src/index.js'
import {
  call,
  claimed,
  context,
  database,
  keyOf,
  MIB,
  newStage,
  objects,
  onServer,
  pattern,
  readRange,
  rows
} from './support.js'

/** Chunks of a body, most of them small, some longer than a window. */
const chunks = fc.array(fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 1.5 * MIB })), {
  minLength: 1,
  maxLength: 6
})
const position = fc.oneof(
  fc.nat(3 * MIB),
  fc.constantFrom(MIB - 1, MIB, MIB + 1, 2 * MIB),
  fc.maxSafeInteger().map(Math.abs)
)

onServer('any body', () => {
  it('is what was written, or nothing', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    await fc.assert(
      fc.asyncProperty(chunks, position, position, fc.boolean(), async (lengths, one, other, seals) => {
        const bytes = pattern(lengths.reduce((sum, length) => sum + length, 0))
        const stage = newStage()
        const writer = await bodies.create(stage, {}, call)
        let at = 0
        for (const length of lengths) {
          await writer.write(bytes.subarray(at, at + length))
          at += length
        }
        if (seals) {
          const locator = await writer.seal(keyOf(bytes))
          const [start, end] = [Math.min(one, other), Math.max(one, other)]
          const range = start < end ? await readRange(bodies, locator, start, end) : Buffer.alloc(0)
          expect(range.equals(bytes.subarray(start, end))).toBe(true)
          expect(await bodies.length(locator, call)).toBe(bytes.length)
          expect(await bodies.drop([stage], call)).toEqual([{ what: stage }])
        } else await writer.discard()
        expect([await objects(db), await rows(db)]).toEqual([0, 0])
      }),
      { numRuns: 25 }
    )
  })
})

/** A database for each run: large objects belong to no schema. */
async function openBodies() {
  const db = await freshDatabase()
  const engine = await pglo({ url: db.url, schema: 'lo' }).open(context)
  return {
    bodies: engine.bodies as BodyStore,
    async close() {
      await engine.close()
      await db.drop()
    }
  }
}

onServer('the body store', () => {
  it('does what the model does', async () => {
    const done = await runBodiesModel(openBodies, { timeLimitMs: 4_000 })
    process.stdout.write(`bodies of pglo: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
    expect(done.runs).toBeGreaterThan(0)
  }, 60_000)
})

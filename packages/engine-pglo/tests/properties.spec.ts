// Any body, in any chunks, of any length around a window or two, comes back in any range; and what is not sealed leaves nothing.
import { runBodiesModel, runCatalogModel } from '@alkblobs/conformance/model'
import { type BodyStore, type Catalog, InvalidArgumentError } from '@alkblobs/core/engine'
import { freshDatabase, freshSchema } from '@alkblobs/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PgloConfig, pglo } from '../src/index.js'
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
    const done = await runBodiesModel(openBodies, { timeLimitMs: 3_000 })
    process.stdout.write(`bodies of pglo: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
    expect(done.runs).toBeGreaterThan(0)
  }, 60_000)
})

/** Two openings of one schema: the model of catalogs makes no large object. */
async function openCatalogs() {
  const at = await freshSchema()
  const definition = pglo({ url: at.url, schema: at.schema, poolMax: 3 })
  const engines = await Promise.all([definition, definition].map(each => each.open(context)))
  return {
    catalogs: engines.map(({ catalog }) => catalog as Catalog),
    async close() {
      for (const engine of engines) await engine.close()
      await at.drop()
    }
  }
}

onServer('the catalog beside the objects', () => {
  it('does what the model does', async () => {
    const done = await runCatalogModel(openCatalogs, { timeLimitMs: 3_000 })
    process.stdout.write(`catalog of pglo: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
    expect(done.runs).toBeGreaterThan(0)
  }, 60_000)
})

describe('any config', () => {
  const odd = fc.oneof(fc.constantFrom<unknown>(null, -1, 1.5, '', 'a\0b', true, [], {}, 'pg_own'), fc.anything())
  const mostly = (right: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: odd })
  const idleMs = fc.oneof(fc.constantFrom(99, 100, 86_400_000, 86_400_001), fc.nat(100_000))
  const isWhole = (value: unknown, least: number, most: number) =>
    value === undefined || (Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
  const isName = (value: unknown) =>
    value === undefined ||
    (typeof value === 'string' && /^(?!pg_|information_schema$)[^\0]+$/s.test(value) && Buffer.byteLength(value) <= 63)

  it('is a definition or a typed error', () => {
    const config = fc.record({
      url: fc.constant('postgres://host/db'),
      schema: mostly(fc.constantFrom(undefined, 'lo', 'ä'.repeat(31), 'ä'.repeat(32), 'information_schema')),
      poolMax: mostly(fc.oneof(fc.constantFrom(undefined, 1, 2, 1_000, 1_001), fc.nat(2_000))),
      stageIdleTimeoutMs: mostly(fc.oneof(fc.constant(undefined), idleMs))
    })
    fc.assert(
      fc.property(config, given => {
        const { schema, poolMax, stageIdleTimeoutMs } = given
        // The session package takes null for what was left out.
        const isRight = isName(schema) && (poolMax === null || isWhole(poolMax, 2, 1_000))
        if (isRight && isWhole(stageIdleTimeoutMs, 100, 86_400_000)) pglo(given as PgloConfig)
        else expect(() => pglo(given as PgloConfig)).toThrow(InvalidArgumentError)
      }),
      { numRuns: 500 }
    )
    fc.assert(
      fc.property(
        fc.anything().filter(value => typeof value !== 'object' || value === null),
        value => {
          expect(() => pglo(value as never)).toThrow(InvalidArgumentError)
        }
      )
    )
  })
})

/** The engine against plain data, through two openings of one schema; and whatever somebody may say about a server. */
import { type Overrides, override } from '@alkblobs/conformance'
import { runCatalogModel } from '@alkblobs/conformance/model'
import { type Catalog, InvalidArgumentError } from '@alkblobs/core/engine'
import { freshSchema } from '@alkblobs/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type PostgresConfig, postgres } from '../src/index.js'
import { context, describeServer } from './fixture.js'

async function open(wrong: (inner: Catalog) => Overrides<Catalog> = () => ({})) {
  const at = await freshSchema()
  const definition = postgres({ url: at.url, schema: at.schema, poolMax: 3 })
  const engines = await Promise.all(
    [definition, definition].map(each => each.open({ ...context, algorithm: 'sha256', lockTimeoutMs: 5_000 }))
  )
  return {
    catalogs: engines.map(({ catalog }) => override(catalog as Catalog, wrong(catalog as Catalog))),
    async close() {
      for (const engine of engines) await engine.close()
      await at.drop()
    }
  }
}

describeServer('on a server', () => {
  test('the catalog does what the model does', async () => {
    const done = await runCatalogModel(() => open(), { timeLimitMs: 4_000 })
    process.stdout.write(`catalog of engine-postgres: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
    expect(done.runs).toBeGreaterThan(0)
  }, 60_000)

  test('the model finds a catalog that answers what it renewed as lost', async () => {
    const wrong = (inner: Catalog): Overrides<Catalog> => ({
      renew: async (request, call) => ({ ...(await inner.renew(request, call)), pins: request.pins })
    })
    const options = { seed: 3, timeLimitMs: 20_000, shrinkLimitMs: 0 }
    await expect(runCatalogModel(() => open(wrong), options)).rejects.toThrow('Property failed')
  }, 60_000)
})

const SECRET = 'hunter2'
const ODD = fc.constantFrom<unknown>(
  ...[null, 0, -1, 1.5, Number.NaN, '', 'a\0b', true, [], {}, Symbol('odd'), 2n ** 64n],
  ...['toString', 'constructor', '__proto__', SECRET]
)
/** A value that is right, and sometimes one that is right nowhere or somewhere else. */
const mostly = (right: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: ODD }, { weight: 1, arbitrary: fc.anything() })

const urls = fc.constantFrom(
  ...['postgres://host/db', 'postgresql://me@host:5433/db', `postgres://me:${SECRET}@[::1]/db?sslmode=require`],
  ...[`postgres://me:${SECRET}@host:port/db`, `mysql://me:${SECRET}@host/db`, 'postgres://%zz@host/db', 'host/db'],
  ...['postgres://host/db?sslmode=toString', 'postgres://host:0/db', `postgres://host/db?passwd=${SECRET}`]
)
const URLS_RIGHT = [
  'postgres://host/db',
  'postgresql://me@host:5433/db',
  `postgres://me:${SECRET}@[::1]/db?sslmode=require`
]
/** Wrong in one part, which another option takes the place of. */
const URLS_PARTLY_RIGHT: Readonly<Record<string, string>> = {
  'postgres://host:0/db': 'port',
  'postgres://host/db?sslmode=toString': 'ssl'
}
const TLS = [true, false, 'disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

const configs = fc.record(
  {
    url: mostly(urls),
    host: mostly(fc.constantFrom('localhost', '/run/postgresql')),
    port: mostly(fc.integer({ min: 1, max: 65_535 })),
    user: mostly(fc.string({ minLength: 1 })),
    password: mostly(fc.string()),
    database: mostly(fc.string({ minLength: 1 })),
    applicationName: mostly(fc.string({ minLength: 1 })),
    ssl: mostly(fc.constantFrom(...TLS)),
    schema: mostly(fc.constantFrom('alkblobs', 'Ümläut', 'a"b', 'pg_own', 'information_schema', 'ä'.repeat(32))),
    poolMax: mostly(fc.integer({ min: 2, max: 1_000 }))
  },
  { requiredKeys: [] }
)

const isText = (value: unknown) => typeof value === 'string' && value !== '' && !value.includes('\0')
const isWhole = (value: unknown, least: number, most: number) =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= most

/** What each option may be, written out anew; `null` counts as left out for what concerns the connection. */
const isRight: Readonly<Record<string, (value: unknown, config: object) => boolean>> = {
  url: (value, config) =>
    URLS_RIGHT.includes(value as string) ||
    (typeof value === 'string' && Reflect.get(config, URLS_PARTLY_RIGHT[value] ?? '') != null),
  host: value => value === null || isText(value),
  port: value => value === null || isWhole(value, 1, 65_535),
  user: value => value === null || isText(value),
  password: value => value === null || value === '' || isText(value),
  database: value => value === null || isText(value),
  applicationName: value => value === null || isText(value),
  ssl: value => value === null || TLS.includes(value as string) || typeof value === 'object',
  schema: value => ['alkblobs', 'Ümläut', 'a"b'].includes(value as string) || isPlainName(value),
  poolMax: value => isWhole(value, 2, 1_000)
}
/** Anything short that is not the server's own. */
function isPlainName(value: unknown): boolean {
  return (
    isText(value) && !/^(pg_|information_schema$)/.test(value as string) && Buffer.byteLength(value as string) <= 63
  )
}

describe('any config', () => {
  test('is a definition or a typed error that names the option and repeats nothing', () => {
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: configs }, { weight: 1, arbitrary: fc.anything() }), config => {
        const given = typeof config === 'object' && config !== null ? Object.entries(config) : undefined
        const isPlain =
          given?.every(([name, value]) => value === undefined || (isRight[name]?.(value, config as object) ?? true)) ??
          false
        let refused: unknown
        try {
          expect(postgres(config as PostgresConfig).name).toBe('postgres')
        } catch (error) {
          refused = error
        }
        if (refused === undefined) expect(isPlain, 'accepted').toBe(true)
        else {
          expect(refused).toBeInstanceOf(InvalidArgumentError)
          expect((refused as Error).message).not.toContain(SECRET)
          expect(isPlain, 'refused').toBe(false)
        }
      }),
      { numRuns: 1_500 }
    )
  })
})

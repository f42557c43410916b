/** The catalog against plain data, through two openings of one file: outcomes, rows and counts, step by random step. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCatalogModel } from '@alkblobs/conformance/model'
import { type Catalog, InvalidArgumentError } from '@alkblobs/core/engine'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SqliteConfig, sqlite } from '../src/index.js'

const context = { algorithm: 'sha256', lockTimeoutMs: 5_000, connectTimeoutMs: 1_000 } as const
/** In memory where there is such a folder: what is tried is the catalog, not the disk. */
const below = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

async function open() {
  const folder = mkdtempSync(join(below, 'alkblobs-sqlite-'))
  const definition = sqlite({ file: join(folder, 'pool.db') })
  const engines = await Promise.all([definition, definition].map(each => each.open(context)))
  return {
    catalogs: engines.map(({ catalog }) => catalog as Catalog),
    async close() {
      for (const engine of engines) await engine.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

test('the catalog does what the model does', async () => {
  const done = await runCatalogModel(open, { timeLimitMs: 4_000 })
  process.stdout.write(`catalog of sqlite: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
  expect(done.runs).toBeGreaterThan(0)
}, 60_000)

test('any config is a definition or a typed error', () => {
  const odd = fc.oneof(
    fc.constantFrom<unknown>(null, undefined, '', 'a\0b', ':memory:', 'file:x', 'x ', 7),
    fc.anything()
  )
  const files = fc.oneof(fc.constantFrom('pool.db', './a/b', '/ö.db', ' x'), fc.string())
  const config = fc.record(
    {
      file: fc.oneof({ weight: 3, arbitrary: files }, { weight: 1, arbitrary: odd }),
      durability: fc.oneof({ weight: 3, arbitrary: fc.constantFrom('disk', 'os') }, { weight: 1, arbitrary: odd })
    },
    { requiredKeys: [] }
  )
  let taken = 0
  fc.assert(
    fc.property(fc.oneof({ weight: 6, arbitrary: config }, { weight: 1, arbitrary: odd }), given => {
      const { file, durability } = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
      const isFile = typeof file === 'string' && /^(?!:memory:$|file:)[^\0]*\S$/su.test(file) && !file.includes('\0')
      const isRight = isFile && (durability === undefined || durability === 'disk' || durability === 'os')
      if (!isRight) expect(() => sqlite(given as SqliteConfig)).toThrow(InvalidArgumentError)
      else {
        expect(sqlite(given as unknown as SqliteConfig).name).toBe('sqlite')
        taken++
      }
    }),
    { numRuns: 1_000 }
  )
  expect(taken).toBeGreaterThan(100)
})

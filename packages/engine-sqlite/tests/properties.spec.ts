/** The catalog against plain data, through two openings of one file: outcomes, rows and counts, step by random step. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCatalogModel } from '@alkblobs/conformance/model'
import type { Catalog } from '@alkblobs/core/engine'
import { expect, test } from 'vitest'
import { sqlite } from '../src/index.js'

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

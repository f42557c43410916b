/** The catalog against plain data, through two openings of one memory: outcomes, rows and counts, step by random step. */
import { runCatalogModel } from '@alkblobs/conformance/model'
import type { Catalog } from '@alkblobs/core/engine'
import { expect, test } from 'vitest'
import { createMedium, mem } from '../src/index.js'

const context = { algorithm: 'sha256', lockTimeoutMs: 1_000, connectTimeoutMs: 1_000 } as const

async function open() {
  const medium = createMedium()
  const engines = await Promise.all([mem({ medium }), mem({ medium })].map(definition => definition.open(context)))
  return {
    catalogs: engines.map(({ catalog }) => catalog as Catalog),
    async close() {
      for (const engine of engines) await engine.close()
    }
  }
}

test('the catalog does what the model does', async () => {
  const done = await runCatalogModel(open, { runs: 1_500, timeLimitMs: 4_000 })
  process.stdout.write(`catalog of mem: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
  expect(done.runs).toBeGreaterThan(0)
})

/** The catalog against plain data, through two openings of one schema: outcomes, rows and counts, step by random step. */
import { runCatalogModel } from '@alkblobs/conformance/model'
import { Sessions } from '@alkblobs/postgres-session'
import { freshSchema } from '@alkblobs/testkit'
import { expect, test } from 'vitest'
import { openCatalog } from '../src/index.js'
import { call, describeServer } from './fixture.js'

async function openOn({ url, schema }: Awaited<ReturnType<typeof freshSchema>>) {
  const sessions = new Sessions({ url, poolMax: 3 }, { connectTimeoutMs: 10_000, lockTimeoutMs: 5_000 })
  const options = { schema, algorithm: 'sha256', lockTimeoutMs: 5_000, inlineLengthMax: 2 ** 24, poolMax: 3 } as const
  const { catalog, endLeases } = await openCatalog(sessions, options, call())
  const close = async () => {
    await endLeases()
    await sessions.close()
  }
  return { catalog, close }
}

async function open() {
  const at = await freshSchema()
  const opened = [await openOn(at), await openOn(at)]
  return {
    catalogs: opened.map(({ catalog }) => catalog),
    async close() {
      for (const { close } of opened) await close()
      await at.drop()
    }
  }
}

describeServer('on a server', () => {
  test('the catalog does what the model does', async () => {
    const done = await runCatalogModel(open, { timeLimitMs: 5_000 })
    process.stdout.write(`catalog of postgres: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
    expect(done.runs).toBeGreaterThan(0)
  }, 60_000)
})

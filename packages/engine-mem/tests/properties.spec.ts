/** The catalog against plain data, through two openings of one memory: outcomes, rows and counts, step by random step. */
import { type Overrides, override } from '@alkblobs/conformance'
import { runCatalogModel } from '@alkblobs/conformance/model'
import type { Catalog } from '@alkblobs/core/engine'
import { describe, expect, test } from 'vitest'
import { createMedium, mem } from '../src/index.js'

const context = { algorithm: 'sha256', lockTimeoutMs: 1_000, connectTimeoutMs: 1_000 } as const

type Form = 'inline' | 'durable'

async function open(wrong: (inner: Catalog) => Overrides<Catalog> = () => ({}), form: Form = 'inline') {
  const medium = createMedium()
  const definitions = [mem({ medium }), mem({ medium })]
  const engines = await Promise.all(
    definitions.map(definition => definition.open({ ...context, ...(form === 'durable' && { form }) }))
  )
  return {
    catalogs: engines.map(({ catalog }) => override(catalog as Catalog, wrong(catalog as Catalog))),
    async close() {
      for (const engine of engines) await engine.close()
    }
  }
}

// Beside a durable catalog memory runs the durable form.
test.each<Form>(['inline', 'durable'])('the catalog does what the model does, on the %s form', async form => {
  const done = await runCatalogModel(() => open(undefined, form), { timeLimitMs: 2_000 })
  process.stdout.write(`catalog of mem, ${form}: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
  expect(done.runs).toBeGreaterThan(0)
})

/** Catalogs that are wrong in one way each: a model that finds none of them is worth nothing. */
const wrongs: Readonly<Record<string, (inner: Catalog) => Overrides<Catalog>>> = {
  'turns the outcomes of a batch round': inner => ({
    publish: async (items, call) => [...(await inner.publish(items, call))].reverse()
  }),
  'releases whatever row it finds': inner => ({
    release: (pins, call) =>
      inner.release(
        pins.map(({ key, pin }) => ({ key, pin: { ...pin, generation: Number.MAX_SAFE_INTEGER } })),
        call
      )
  }),
  'publishes what is no longer staged': inner => ({
    async publish(items, call) {
      for (const { bytes } of items)
        if (bytes.kind === 'staged') await inner.stage([{ id: bytes.stage, ttlMs: 1_000 }], call)
      return await inner.publish(items, call)
    }
  }),
  'takes the first key of each page of due rows twice': inner => ({
    async due(lease, after, limit, call) {
      const page = await inner.due(lease, after, limit, call)
      return { ...page, keys: [...page.keys.slice(0, 1), ...page.keys] }
    }
  }),
  'removes what a source calls live': inner => ({
    remove: (items, trashDelayMs, lease, call) =>
      inner.remove(
        items.map(item => ({ ...item, live: false })),
        trashDelayMs,
        lease,
        call
      )
  }),
  'removes an entry wherever it lies': inner => ({
    remove: (items, trashDelayMs, lease, call) =>
      inner.remove(
        items.map(item => {
          const { at: _, ...rest } = item.kind === 'marked' ? item : { ...item, at: undefined }
          return rest as typeof item
        }),
        trashDelayMs,
        lease,
        call
      )
  }),
  'forgets how often a drop has failed': inner => ({
    trash: async (after, limit, call) => (await inner.trash(after, limit, call)).map(row => ({ ...row, attempts: 0 }))
  }),
  'knows every body': inner => ({ known: async (found, call) => (await inner.known(found, call)).map(() => true) }),
  'counts a page too much': inner => ({
    async candidates(lease, after, limit, call) {
      const page = await inner.candidates(lease, after, limit, call)
      return { ...page, alreadyStaged: page.alreadyStaged + page.cancelled.length }
    }
  })
}

describe('the model finds a catalog that', () => {
  for (const [name, wrong] of Object.entries(wrongs)) {
    test(name, async () => {
      const options = { seed: 3, timeLimitMs: 20_000, shrinkLimitMs: 0 }
      await expect(runCatalogModel(() => open(wrong), options)).rejects.toThrow('Property failed')
    })
  }
})

/** What a sweep says of itself beside its order: who counts as live, what a bounded one leaves, which failures it foresees. */
import { describe, expect, it } from 'vitest'
import { type BlobKey, EngineFault } from '../src/engine.js'
import { ABSENT, opened, rejection } from './opened.js'
import { Scripted } from './scripted-engine.js'

/** Small unprotected entries under an application that references some of them. */
async function pool(form: 'inline' | 'durable', small = 3) {
  const engine = new Scripted({ form })
  const { store } = await opened({ engine })
  const keys: string[] = []
  for (let i = 0; i < small; i++) {
    const receipt = await store.put(`small ${i}`)
    await receipt.release()
    keys.push(receipt.key)
  }
  const references = new Set<string>()
  store.protect({ name: 'app', live: () => references })
  return { store, engine, keys, references }
}

describe('the report of a sweep', () => {
  it('counts what a source calls live, and stages none of it', async () => {
    for (const form of ['inline', 'durable'] as const) {
      const { store, engine, keys, references } = await pool(form)
      references.add(keys[1] as string)
      expect(await store.sweep()).toMatchObject({ scanned: 3, live: 1, candidatesStaged: 2, alreadyStaged: 0 })
      const staged = engine.given.filter(({ step }) => step === 'stageCandidates').flatMap(({ args }) => args[0])
      expect(staged).not.toContain(keys[1])
      expect(staged).toHaveLength(2)
    }
  })

  it('counts, in a dry run, a row that a put has cancelled as one to stage anew', async () => {
    const { store } = await pool('durable')
    await store.sweep()
    await (await store.put('small 1')).release()
    const dry = await store.sweep({ dryRun: true })
    expect(dry).toMatchObject({ scanned: 3, live: 0, alreadyStaged: 2, candidatesStaged: 1 })
  })

  it('counts a row that is cancelled in the midst of it as staged: it ends with the next', async () => {
    const { store, engine, keys } = await pool('durable')
    engine.windowDelayMs = 1_000
    await store.sweep()
    engine.next('candidates', async effect => {
      await (await store.put('small 1')).release()
      // A delete of nothing ends what was released.
      await store.delete(ABSENT)
      expect(engine.window.get(keys[1] as BlobKey)?.cancelled).toBe(true)
      return effect()
    })
    expect(await store.sweep()).toMatchObject({ scanned: 3, live: 0, alreadyStaged: 3, candidatesStaged: 0 })
    expect(await store.sweep()).toMatchObject({ scanned: 3, live: 0, alreadyStaged: 2, candidatesStaged: 1 })
  })

  it('counts a candidate that a delete took as deleted, with the bytes of the others alone', async () => {
    const { store, keys } = await pool('durable')
    await store.sweep()
    expect(await store.delete(keys[0] as string)).toBe(true)
    expect(await store.sweep()).toMatchObject({
      deleted: 3,
      cancelledByArbitration: 0,
      bytesDeleted: 2 * 'small 1'.length
    })
  })

  it('adds what maintenance reclaimed, and tells how long it took', async () => {
    const { store, engine } = await pool('durable')
    engine.lie('maintain', () => ({ pinsReaped: 2, stagesTrashed: 3 }))
    const begun = performance.now()
    const report = await store.sweep()
    expect(report).toMatchObject({ pinsReaped: 2, stagesReclaimed: 3 })
    expect(report.durationMs).toBeGreaterThanOrEqual(0)
    expect(report.durationMs).toBeLessThanOrEqual(performance.now() - begun)
    expect(report).not.toHaveProperty('cause')
    expect(report).not.toHaveProperty('source')
  })

  it('names the steps as they go by', async () => {
    for (const [form, steps] of [
      ['durable', ['execute', 'stage']],
      ['inline', ['stage', 'execute']]
    ] as const) {
      const { store } = await pool(form)
      const seen: string[] = []
      await store.sweep({ onProgress: ({ step }) => void seen.push(step) })
      expect(seen).toEqual(steps)
    }
  })
})

describe('a sweep', () => {
  it('without time begins no page', async () => {
    const { store, engine } = await pool('durable')
    await store.sweep()
    expect(await store.sweep({ maxDurationMs: 0 })).toMatchObject({ scanned: 0, deleted: 0 })
    expect(await store.sweep({ maxDurationMs: 60_000 })).toMatchObject({ deleted: 3 })
    expect(engine.count('due')).toBe(2)
  })

  it('that may remove no more looks for no more candidates', async () => {
    const { store, engine } = await pool('durable')
    await store.sweep()
    const before = engine.count('due')
    expect(await store.sweep({ maxDeletes: 0 })).toMatchObject({ deleted: 0, alreadyStaged: 3 })
    expect(engine.count('due')).toBe(before)
  })

  it('without sources takes no lease, and has no counts', async () => {
    const { store, engine } = await opened({ engine: new Scripted({ form: 'durable' }) })
    await (await store.put('something')).release()
    const report = await store.sweep()
    expect(report).toMatchObject({ aborted: 'NoLivenessSources', scanned: 0, candidatesStaged: 0 })
    for (const absent of ['cause', 'source']) expect(report).not.toHaveProperty(absent)
    expect(engine.count('lease')).toBe(0)
  })

  it('reports a table that cannot be trusted like a source that failed', async () => {
    const { store, engine } = await pool('durable')
    engine.next('candidates', () => {
      throw new EngineFault('liveness', 'the table is gone')
    })
    expect(await store.sweep()).toMatchObject({ aborted: 'ProtectFailed', candidatesStaged: 0 })
  })

  it('that was cancelled still fails for what the medium did', async () => {
    const { store, engine } = await pool('durable')
    const cancelling = new AbortController()
    engine.next('candidates', () => {
      cancelling.abort()
      throw new EngineFault('corrupt', 'not what it was')
    })
    expect(await rejection(store.sweep({ signal: cancelling.signal }))).toMatchObject({ kind: 'corrupt' })
  })
})

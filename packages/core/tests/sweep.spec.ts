/** The order of a sweep's steps, and the report of one that is cut short at each of them: exact, and nothing after the doubt. */
import { describe, expect, it } from 'vitest'
import { EngineFault } from '../src/engine.js'
import type { SweepReport } from '../src/index.js'
import { bytes, opened, rejection } from './opened.js'
import { Scripted } from './scripted-engine.js'

const EFFECTS = new Set(['stageCandidates', 'remove', 'drop', 'dropped', 'maintain'])

interface Pool {
  readonly form?: 'inline' | 'durable'
  /** Unprotected entries in the kv tier. */
  readonly small?: number
  /** Unprotected entries in the large tier. */
  readonly large?: number
}

async function pool({ form = 'durable', small = 3, large = 2 }: Pool = {}) {
  const engine = new Scripted({ form })
  const { store } = await opened({ engine })
  const receipts = []
  for (let i = 0; i < small; i++) receipts.push(await store.put(`small ${i}`))
  for (let i = 0; i < large; i++) receipts.push(await store.put(bytes(100, i + 1)))
  for (const receipt of receipts) await receipt.release()
  const source = store.protect({ name: 'app', live: () => [] })
  return { store, engine, source, keys: receipts.map(({ key }) => key) }
}

/** The steps of a sweep that an engine sees, without reads of the record. */
function seen(engine: Scripted): string[] {
  return engine.steps.filter(step => step !== 'meta.read')
}

/** A source that notes when it is asked. */
function asked(engine: Scripted) {
  const live = () => {
    engine.steps.push('sources')
    return []
  }
  return { name: 'asked', live }
}

function addsUp({ scanned, live, candidatesStaged, alreadyStaged }: SweepReport): void {
  expect(scanned).toBe(live + candidatesStaged + alreadyStaged)
}

describe('the steps of a sweep', () => {
  it('on a durable catalog: lease, sources, maintenance, execute, stage, drop', async () => {
    const { store, engine } = await pool()
    store.protect(asked(engine))
    await store.sweep()
    engine.steps.length = 0
    expect(await store.sweep()).toMatchObject({ deleted: 5, candidatesStaged: 0 })
    expect(seen(engine)).toEqual([
      'lease',
      'sources',
      'maintain',
      'due',
      'remove',
      'candidates',
      'trash',
      'drop',
      'dropped',
      'lease.release'
    ])
  })

  it('on an inline catalog: lease, sources, maintenance, stage, execute, drop', async () => {
    const { store, engine } = await pool({ form: 'inline' })
    store.protect(asked(engine))
    engine.steps.length = 0
    const report = await store.sweep()
    expect(report).toMatchObject({
      candidatesStaged: 5,
      deleted: 5,
      cancelledByArbitration: 0,
      bytesDeleted: 3 * 7 + 200
    })
    expect(seen(engine).filter(step => step !== 'release' && step !== 'renew')).toEqual([
      'lease',
      'sources',
      'maintain',
      'candidates',
      'stageCandidates',
      'due',
      'remove',
      'trash',
      'drop',
      'dropped',
      'lease.release'
    ])
  })

  it('never execute what the same sweep staged, at delay 0', async () => {
    const { store, engine } = await pool()
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 5, deleted: 0 })
    expect(engine.entries.size).toBe(5)
  })

  it('of a dry run change nothing and report what the next staging does', async () => {
    for (const form of ['inline', 'durable'] as const) {
      const { store, engine } = await pool({ form })
      const dry = await store.sweep({ dryRun: true })
      expect(seen(engine).filter(step => EFFECTS.has(step))).toEqual([])
      const { scanned, live, alreadyStaged, candidatesStaged } = await store.sweep()
      expect(dry).toMatchObject({ scanned, live, alreadyStaged, candidatesStaged, deleted: 0, bytesDeleted: 0 })
    }
  })

  it('end at once for the second of two, as data', async () => {
    const { store, engine } = await pool()
    const gate = engine.gate('maintain')
    const first = store.sweep()
    await gate.reached
    expect(await store.sweep()).toMatchObject({ aborted: 'SweeperLock', scanned: 0, deleted: 0 })
    expect(await store.maintain()).toMatchObject({ aborted: 'SweeperLock' })
    gate.open()
    expect((await first).aborted).toBeUndefined()
  })

  it('release the lease whatever fails', async () => {
    for (const step of ['maintain', 'due', 'remove', 'candidates', 'stageCandidates', 'trash', 'drop', 'dropped']) {
      const { store, engine } = await pool()
      if (['remove', 'drop', 'dropped'].includes(step)) await store.sweep()
      engine.failBefore(step)
      expect(await rejection(store.sweep()), step).toMatchObject({ code: 'ERR_BLOB_ENGINE', operation: step })
      expect(engine.leased, step).toBe(false)
    }
  })

  it('create nothing on a virgin medium', async () => {
    const { store, engine } = await opened()
    store.protect({ name: 'app', live: () => [] })
    const { durationMs: _, ...report } = await store.sweep()
    expect(report).toMatchObject({ scanned: 0, deleted: 0 })
    expect(report.aborted).toBeUndefined()
    expect(await store.maintain()).toMatchObject({ dropped: 0 })
    expect(engine.record).toBeUndefined()
    expect(engine.claim).toBeUndefined()
  })
})

describe('counts', () => {
  it('of several pages are exact', async () => {
    const { store, engine } = await pool({ small: 0, large: 0 })
    for (let i = 0; i < 1_205; i++) await (await store.put(`${i}`)).release()
    const first = await store.sweep()
    expect(first).toMatchObject({ scanned: 1_205, candidatesStaged: 1_205, live: 0 })
    const second = await store.sweep()
    expect(second).toMatchObject({ deleted: 1_205, scanned: 0, cancelledByArbitration: 0 })
    expect(engine.count('remove')).toBeGreaterThanOrEqual(13)
    const batches = engine.given
      .filter(({ step }) => step === 'remove')
      .map(({ args }) => (args[0] as unknown[]).length)
    expect(Math.max(...batches)).toBe(100)
  })

  it('of removals are bounded by maxDeletes', async () => {
    const { store, engine } = await pool({ small: 5, large: 0 })
    await store.sweep()
    expect(await store.sweep({ maxDeletes: 0 })).toMatchObject({ deleted: 0, alreadyStaged: 5 })
    expect(await store.sweep({ maxDeletes: 3 })).toMatchObject({ deleted: 3 })
    expect(engine.entries.size).toBe(2)
  })

  it('tell pinned from staged, and a put that landed during the window', async () => {
    const { store, keys } = await pool({ small: 4, large: 0 })
    await using pinned = await store.pin(keys[0] as string)
    expect(pinned?.held).toBe(true)
    const first = await store.sweep()
    expect(first).toMatchObject({ scanned: 4, live: 1, candidatesStaged: 3 })
    await (await store.put('small 1')).release()
    const second = await store.sweep()
    expect(second).toMatchObject({ deleted: 2, cancelledByArbitration: 1, live: 1, candidatesStaged: 1 })
    addsUp(second)
  })

  it('count a key that was pinned while it was being staged as live', async () => {
    const { store, engine, keys } = await pool({ small: 2, large: 0 })
    engine.next('stageCandidates', async effect => {
      await store.pin(keys[0] as string)
      return effect()
    })
    const report = await store.sweep()
    expect(report).toMatchObject({ scanned: 2, live: 1, candidatesStaged: 1 })
    addsUp(report)
  })

  it('count a candidate that is busy nowhere; it stays due', async () => {
    const { store, engine } = await pool({ small: 2, large: 0 })
    await store.sweep()
    engine.lie('remove', (truth: unknown[]) => truth.map(() => ({ outcome: 'busy' })))
    expect(await store.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 0 })
  })

  it('report drops that failed, and starve nobody', async () => {
    const { store, engine } = await pool({ small: 0, large: 3 })
    await store.sweep()
    const cause = new Error('EACCES')
    engine.next('drop', async effect => {
      const results = (await effect()) as { what: string }[]
      return results.map((result, i) => (i === 0 ? { ...result, error: cause } : result))
    })
    const report = await store.sweep()
    expect(report).toMatchObject({ deleted: 3, bytesDeleted: 200, failed: [{ cause }] })
    expect(engine.trash.size).toBe(1)
    expect(await store.sweep()).toMatchObject({ bytesDeleted: 100, failed: [] })
    expect(engine.trash.size).toBe(0)
  })
})

describe('a sweep that loses its lease', () => {
  it.each(['maintain', 'due', 'remove', 'candidates', 'stageCandidates', 'trash', 'drop'])(
    'after %s does nothing more, and reports what was done',
    async step => {
      const { store, engine } = await pool()
      const isSecond = ['remove', 'drop', 'trash', 'due'].includes(step)
      if (isSecond) await store.sweep()
      const before = engine.steps.length
      engine.next(step, async effect => {
        const answer = await effect()
        engine.loseLease()
        return answer
      })
      const report = await store.sweep()
      // After the last drop there is nothing left to stop.
      expect(report.aborted).toBe(step === 'drop' ? undefined : 'LeaseLost')
      const after = engine.steps.slice(before)
      const effects = after.slice(after.indexOf(step) + 1).filter(name => EFFECTS.has(name))
      // Trash that was dropped is recorded as such: its bodies are gone.
      expect(effects).toEqual(step === 'drop' ? ['dropped'] : [])
      expect(report.deleted).toBe(['remove', 'drop', 'trash'].includes(step) ? 5 : 0)
      expect(report.candidatesStaged).toBe(step === 'stageCandidates' ? 5 : 0)
      expect(engine.entries.size).toBe(5 - report.deleted)
      addsUp(report)
    }
  )

  it('between two pages has staged the first', async () => {
    const { store, engine } = await pool({ small: 0, large: 0 })
    for (let i = 0; i < 1_100; i++) await (await store.put(`${i}`)).release()
    engine.next('stageCandidates', async effect => {
      const answer = await effect()
      engine.loseLease()
      return answer
    })
    const report = await store.sweep()
    expect(report).toMatchObject({ aborted: 'LeaseLost', scanned: 1_000, candidatesStaged: 1_000 })
    expect(engine.window.size).toBe(1_000)
  })

  it('before a removal hears of it from the catalog, and removes nothing', async () => {
    const { store, engine } = await pool()
    await store.sweep()
    engine.next('remove', async effect => {
      engine.loseLease()
      return effect()
    })
    const report = await store.sweep()
    expect(report).toMatchObject({ aborted: 'LeaseLost', deleted: 0 })
    expect(report.cause).toMatchObject({ kind: 'conflict' })
    expect(engine.entries.size).toBe(5)
  })

  it('says LeaseLost where the whole server went away and the lease had not heard of it, and keeps its counts', async () => {
    for (const isGone of [true, false]) {
      const { store, engine } = await pool()
      await store.sweep()
      engine.failBefore('trash', new EngineFault('transient', 'the connection ended'))
      engine.next('due', effect => effect())
      engine.next('due', async effect => {
        if (isGone) engine.loseLease()
        return effect()
      })
      const sweep = store.sweep()
      if (isGone) expect(await sweep).toMatchObject({ aborted: 'LeaseLost', deleted: 5 })
      else expect(await rejection(sweep)).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'transient' })
      expect([engine.leased, engine.entries.size]).toEqual([false, 0])
    }
  })

  it('whose removal fails for another reason is a failure of the medium', async () => {
    const { store, engine } = await pool()
    await store.sweep()
    engine.failBefore('remove', new EngineFault('full', 'no space'))
    expect(await rejection(store.sweep())).toMatchObject({ kind: 'full' })
    expect(engine.entries.size).toBe(5)
  })
})

describe('a sweep that is cancelled', () => {
  it.each(['lease', 'maintain', 'due', 'remove', 'candidates', 'stageCandidates', 'trash', 'drop'])(
    'at %s does nothing more, and reports what was done and why it stopped',
    async step => {
      const { store, engine } = await pool()
      if (['remove', 'drop', 'trash', 'due'].includes(step)) await store.sweep()
      const before = engine.steps.length
      const abort = new AbortController()
      engine.next(step, async effect => {
        const answer = await effect()
        abort.abort(new Error('enough'))
        return answer
      })
      const report = await store.sweep({ signal: abort.signal })
      const after = engine.steps.slice(before)
      if (step !== 'drop') expect(report).toMatchObject({ aborted: 'Cancelled', cause: { message: 'enough' } })
      const effects = after.slice(after.indexOf(step) + 1).filter(name => EFFECTS.has(name))
      expect(effects).toEqual(step === 'drop' ? ['dropped'] : [])
      expect(report.deleted).toBe(['remove', 'drop', 'trash'].includes(step) ? 5 : 0)
      expect(report.candidatesStaged).toBe(step === 'stageCandidates' ? 5 : 0)
      expect(engine.leased).toBe(false)
      addsUp(report)
    }
  )

  it('by a source that fails at arbitration keeps every count of what was done before', async () => {
    const { store, engine, source } = await pool({ small: 0, large: 0 })
    for (let i = 0; i < 1_100; i++) await (await store.put(`${i}`)).release()
    await store.sweep()
    source.remove()
    let asked = 0
    const cause = new Error('the database')
    store.protect({
      name: 'judge',
      isLive: () => {
        if (++asked > 1) throw cause
        return []
      }
    })
    const report = await store.sweep()
    expect(report).toMatchObject({ aborted: 'ProtectFailed', source: 'judge', cause, deleted: 1_000, scanned: 0 })
    expect(engine.entries.size).toBe(100)
  })

  it('by a progress callback that throws ends with that error, and frees the lease', async () => {
    const { store, engine } = await pool()
    const onProgress = () => {
      throw new Error('callback')
    }
    expect(await rejection(store.sweep({ onProgress }))).toMatchObject({ message: 'callback' })
    expect(engine.leased).toBe(false)
  })
})

describe('the schedules of model.mjs', () => {
  it('1: a pin handed to a reference during an inline sweep keeps the entry, at every step', async () => {
    for (const step of ['maintain', 'candidates', 'stageCandidates', 'due', 'remove']) {
      for (const moment of ['before', 'after'] as const) {
        const { store, engine, source, keys } = await pool({ form: 'inline', small: 1, large: 0 })
        source.remove()
        const references: string[] = []
        store.protect({ name: 'app', live: () => [...references] })
        const handOver = async () => {
          const pin = await store.pin(keys[0] as string)
          if (pin !== undefined) references.push(pin.key)
          await pin?.release()
        }
        engine.next(step, async effect => {
          if (moment === 'before') await handOver()
          const answer = await effect()
          if (moment === 'after') await handOver()
          return answer
        })
        await store.sweep()
        const kept = engine.entries.has(keys[0] as never)
        expect(kept || references.length === 0, `${moment} ${step}`).toBe(true)
      }
    }
  })

  it('2: a pin during a durable executing sweep cancels the removal, at every step', async () => {
    for (const step of ['maintain', 'due', 'remove']) {
      const { store, engine, keys } = await pool({ small: 1, large: 0 })
      await store.sweep()
      engine.next(step, async effect => {
        await (await store.pin(keys[0] as string))?.release()
        return effect()
      })
      expect(await store.sweep(), step).toMatchObject({ deleted: 0, cancelledByArbitration: 1 })
      expect(engine.entries.size, step).toBe(1)
    }
  })

  it('3: a pin handed over while a delete asks its sources refuses the delete', async () => {
    const { store, engine, source, keys } = await pool({ small: 1, large: 0 })
    source.remove()
    store.protect({
      name: 'app',
      isLive: async () => {
        await (await store.pin(keys[0] as string))?.release()
        return []
      }
    })
    expect(await rejection(store.delete(keys[0] as string))).toMatchObject({ reason: 'pinned' })
    expect(engine.entries.size).toBe(1)
  })
})

/** Fleet mode: who may join, and that protection which has ended by the server's clock is never claimed again. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { EngineFault, type RenewRequest } from '../src/engine.js'
import { type FleetClause, type FleetOptions, openStore, type StoreOptions } from '../src/index.js'
import { bytes, opened, rejection, turn } from './opened.js'
import { Scripted, serverAt } from './scripted-engine.js'

const TTL = 3_000
const here = { kv: serverAt('one') }
const oneServer = { kv: serverAt('one'), bodies: serverAt('one') }
const declared: FleetOptions = { sharedMedia: 'operator-declared' }

/** Every clock that pins look at, moved by the test alone. */
function frozenClocks(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** A store of a fleet over one server. */
async function joined(options: Partial<StoreOptions> & { kvOnly?: boolean; engine?: Scripted } = {}) {
  const engine = options.engine ?? new Scripted({ server: oneServer })
  return opened({ engine, fleet: { pinTtlMs: TTL }, windowDelayMs: 0, operationTimeoutMs: 30_000, ...options })
}

/** Content of unknown length: a put of it asks for no entry before its bytes are there. */
async function* streamed(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}

/** Lets time pass on every clock, the server's first. */
async function pass(engine: Scripted, ms: number): Promise<void> {
  engine.clock += ms
  await vi.advanceTimersByTimeAsync(ms)
}

async function refusal(
  options: StoreOptions
): Promise<{ name: string; code: unknown; clause: unknown; cause: unknown }> {
  const { name, code, clause, cause } = await rejection(openStore(options))
  return { name, code, clause, cause }
}

const broken = (clause: FleetClause) => ({ name: 'FleetConfigError', code: 'ERR_BLOB_FLEET', clause })

describe('a fleet is refused, by the clause that is broken:', () => {
  it('a catalog that is on no server', async () => {
    const { kv, large } = new Scripted()
    expect(await refusal({ kv, large, fleet: declared })).toMatchObject(broken('catalog'))
  })

  it('a server that says why it cannot', async () => {
    const engine = new Scripted({ server: here })
    engine.unfit = 'it is a standby'
    expect(await refusal({ kv: engine.kv, fleet: {} })).toMatchObject(broken('server'))
  })

  it('a proxy that pools by transaction, which is refused outside a fleet too', async () => {
    const open = async () => {
      throw new EngineFault('pooled', 'a proxy changes the server under a session')
    }
    const kv = { name: 'behind', open }
    expect(await refusal({ kv, fleet: {} })).toMatchObject(broken('pooling'))
    expect(await rejection(openStore({ kv }))).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'pooled' })
  })

  it('fewer than two sessions', async () => {
    const engine = new Scripted({ server: here })
    engine.sessionsMax = 1
    expect(await refusal({ kv: engine.kv, fleet: {} })).toMatchObject(broken('sessions'))
  })

  it('a large tier of which nobody said that it is shared', async () => {
    const { kv, large } = new Scripted({ server: here })
    expect(await refusal({ kv, large, fleet: {} })).toMatchObject(broken('large-medium'))
    await (await openStore({ kv, large, fleet: declared })).close()
  })

  it('large objects on another server, whatever is declared', async () => {
    const { kv, large } = new Scripted({ server: { kv: serverAt('one'), bodies: serverAt('two') } })
    for (const fleet of [{}, declared])
      expect(await refusal({ kv, large, fleet })).toMatchObject(broken('same-instance'))
  })

  it.each(['server.identity', 'bodies.server.identity'])('a server that does not answer %s', async step => {
    const engine = new Scripted({ server: oneServer })
    engine.failBefore(step)
    const refused = await refusal({ kv: engine.kv, large: engine.large, fleet: {} })
    expect(refused).toMatchObject({ ...broken('same-instance'), cause: { code: 'ERR_BLOB_ENGINE' } })
  })

  it.each([0, 2, -1, 1.5, Number.NaN, 2 ** 31, '60000', null])('a pin TTL of %s', async ttl => {
    const engine = new Scripted({ server: here })
    const pinTtlMs = ttl as number
    expect(await refusal({ kv: engine.kv, fleet: { pinTtlMs } })).toMatchObject(broken('pin-ttl'))
    expect(await refusal({ kv: engine.kv, fleet: {}, pinTtlMs })).toMatchObject(broken('pin-ttl'))
    expect(engine.steps, 'nothing was opened').toEqual([])
  })

  it.each([null, 'yes', 1, []])('options that are no options: %s', async fleet => {
    const engine = new Scripted({ server: here })
    expect(await refusal({ kv: engine.kv, fleet: fleet as never })).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
  })

  it.each([{ sharedMedia: 'yes' }, { instanceId: 'a b' }, { sharedMedia: true }])('%o', async fleet => {
    const engine = new Scripted({ server: here })
    expect(await refusal({ kv: engine.kv, fleet: fleet as never })).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
  })

  it('and what was opened is closed again', async () => {
    const engine = new Scripted({ server: oneServer })
    engine.sessionsMax = 1
    await refusal({ kv: engine.kv, large: engine.large, fleet: {} })
    expect([...engine.closed].sort()).toEqual(['kv', 'large'])
    expect(
      engine.steps.filter(step => /claim$|compareAndSet/.test(step)),
      'nothing was made'
    ).toEqual([])
  })
})

describe('an instance of a fleet', () => {
  it('labels its pins, keeps them for a minute unless told otherwise, and never asks for a revival', async () => {
    const { store, engine } = await opened({
      engine: new Scripted({ server: here }),
      kvOnly: true,
      fleet: { instanceId: 'host-7' }
    })
    await store.put('a')
    expect([...engine.pins.keys()][0]).toMatch(/ host-7\.[0-9a-f]{16}$/)
    expect([...engine.pins.values()][0]).toMatchObject({ expiresAt: 60_000 })
    await store.delete(`blake3:${'f'.repeat(64)}`)
    const requests = engine.given.filter(({ step }) => step === 'renew').map(({ args }) => args[0] as RenewRequest)
    expect(requests.map(({ revive }) => revive)).toEqual([false])
  })

  it('loses a row that has expired: the signal fires, and the row is not moved', async () => {
    const { store, engine } = await joined()
    const receipt = await store.put('a')
    engine.clock = TTL
    const fired = vi.fn()
    receipt.pin?.signal.addEventListener('abort', fired)
    await store.delete(`blake3:${'f'.repeat(64)}`)
    expect([receipt.pin?.held, fired.mock.calls.length, store.pins()]).toEqual([false, 1, []])
    expect([...engine.pins.values()].every(({ expiresAt }) => expiresAt <= TTL)).toBe(true)
    const again = await store.put('a')
    expect([again.created, again.pin?.held]).toEqual([false, true])
  })

  it('outside a fleet the same row lives on', async () => {
    const { store, engine } = await opened({ engine: new Scripted({ server: here }), kvOnly: true, pinTtlMs: TTL })
    const receipt = await store.put('a')
    engine.clock = TTL
    await store.delete(`blake3:${'f'.repeat(64)}`)
    expect([receipt.pin?.held, [...engine.pins.values()][0]?.expiresAt]).toEqual([true, 2 * TTL])
  })

  it('tells the holder at the first tick after a TTL without a renewal, though the catalog cannot be reached', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const receipt = await store.put('a')
    const pin = await store.pin(receipt.key)
    const fired: unknown[] = []
    pin?.signal.addEventListener('abort', () => fired.push(pin.signal.reason))
    engine.every('renew', async () => {
      throw new Error('unreachable')
    })
    await pass(engine, 2_999)
    expect([fired.length, pin?.held]).toEqual([0, true])
    await pass(engine, 1)
    expect([fired.length, pin?.held, receipt.pin?.held, store.pins()]).toEqual([1, false, false, []])
    expect(fired[0]).toBeInstanceOf(Error)
  })

  it('does not wait for a renewal that hangs', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const receipt = await store.put('a')
    let end = () => {}
    const hanging = new Promise<void>(resolve => {
      end = resolve
    })
    engine.every('renew', effect => hanging.then(effect))
    await pass(engine, TTL)
    expect(receipt.pin?.held).toBe(false)
    expect(receipt.pin?.signal.aborted).toBe(true)
    end()
  })

  it('knows without any timer that it slept too long', async () => {
    frozenClocks()
    const { store } = await joined()
    const receipt = await store.put('a')
    // As a stopped process finds it: the clock has moved, and no timer has run yet.
    vi.setSystemTime(Date.now() + TTL)
    expect(receipt.pin?.held).toBe(false)
    expect(receipt.pin?.signal.aborted).toBe(false)
  })

  it('lives on through failed ticks as long as one of them comes within the TTL', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const receipt = await store.put('a')
    for (let round = 0; round < 3; round++) {
      engine.failBefore('renew')
      await pass(engine, 1_000)
      await pass(engine, 1_000)
    }
    expect([receipt.pin?.held, engine.count('renew')]).toEqual([true, 6])
  })

  it('is not helped by a later put of the same content: in between nobody protected it', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const first = await store.put('a')
    engine.clock += TTL
    // Woken after a stop, before any timer has run.
    vi.setSystemTime(Date.now() + TTL)
    const second = await store.put('a')
    expect([first.pin?.held, first.pin?.signal.aborted, second.pin?.held]).toEqual([false, true, true])
    expect(store.pins()).toEqual([{ key: second.key, count: 1 }])
    await first.release()
    await pass(engine, 50)
    expect([second.pin?.held, engine.pins.size]).toEqual([true, 1])
  })

  it('is not helped by a renewal that was answered after its time: the answer may be about a later row', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const receipt = await store.put('a')
    const gate = engine.gateAfter('renew')
    const renewing = store.delete(`blake3:${'f'.repeat(64)}`)
    await gate.reached
    vi.setSystemTime(Date.now() + TTL)
    gate.open()
    await renewing
    expect([receipt.pin?.held, receipt.pin?.signal.aborted, store.pins()]).toEqual([false, true, []])
  })

  // O30
  it('asks once a tick, finds the missing row at the first, and asks no more', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const receipt = await store.put('a')
    engine.pins.clear()
    for (let tick = 0; tick < 3; tick++) await pass(engine, 1_000)
    expect(receipt.pin?.signal.aborted).toBe(true)
    expect([engine.count('renew'), engine.pins.size]).toEqual([1, 0])
  })
})

describe('a put that outlives its own pin', () => {
  it.each(['kv', 'large'] as const)('fails, leaves no pin, and keeps nothing of its %s body', async tier => {
    frozenClocks()
    const { store, engine } = await joined()
    const content = bytes(tier === 'kv' ? 5 : 100)
    const gate = engine.gateAfter('publish')
    const put = store.put(streamed(content))
    await gate.reached
    // The row was stamped, and the answer came after it had expired; another instance has swept in between.
    await pass(engine, TTL)
    gate.open()
    expect(await rejection(put)).toMatchObject({
      ...{ name: 'PutError', code: 'ERR_BLOB_PIN_LOST', key: expect.stringMatching(/^blake3:/) },
      message: expect.stringMatching(/put the content again/)
    })
    await pass(engine, 50)
    expect([store.pins(), engine.pins.size, engine.stages.size]).toEqual([[], 0, 0])
    // The entry may be in use by others by now; it is theirs or a sweep's.
    expect([engine.entries.size, engine.bodies.size]).toEqual([1, tier === 'kv' ? 0 : 1])
    const again = await store.put(content)
    expect([again.created, again.pin?.held]).toEqual([false, true])
  })

  it('and so does a pin', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const { key, release } = await store.put('a').then(({ key, ...receipt }) => ({ key, release: receipt.pin }))
    await release?.release()
    const gate = engine.gateAfter('pin')
    const pin = store.pin(key)
    await gate.reached
    await pass(engine, TTL)
    gate.open()
    expect(await rejection(pin)).toMatchObject({ code: 'ERR_BLOB_PIN_LOST' })
    expect(store.pins()).toEqual([])
  })

  it('goes well if its row was stamped late enough to stand', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const gate = engine.gate('publish')
    const put = store.put('a')
    await gate.reached
    await pass(engine, TTL)
    gate.open()
    const { pin } = await put
    expect([pin?.held, engine.count('renew')]).toEqual([true, 1])
    await pass(engine, 1_000)
    expect([pin?.held, pin?.signal.aborted]).toEqual([true, false])
  })

  it('fails if the answer that its row stands is as old as a row may be', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const stamped = engine.gate('publish')
    const put = store.put('a')
    await stamped.reached
    await pass(engine, TTL)
    const found = engine.gateAfter('renew')
    stamped.open()
    await found.reached
    // The process stood still, and no timer has run since.
    engine.clock += TTL
    vi.setSystemTime(Date.now() + TTL)
    found.open()
    expect(await rejection(put)).toMatchObject({ code: 'ERR_BLOB_PIN_LOST' })
    expect(store.pins()).toEqual([])
  })

  it('fails where the look at its row fails, with that failure', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const gate = engine.gateAfter('publish')
    const put = store.put('a')
    await gate.reached
    await pass(engine, TTL)
    engine.failBefore('renew')
    gate.open()
    expect(await rejection(put)).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    expect(store.pins()).toEqual([])
  })

  it('whose stage expired on the way cannot publish', async () => {
    frozenClocks()
    const { store, engine } = await joined({ stageTtlMs: 60_000 })
    const gate = engine.gate('publish')
    const put = store.put(streamed(bytes(100)))
    await gate.reached
    engine.clock += 60_000
    gate.open()
    expect(await rejection(put)).toMatchObject({ code: 'ERR_BLOB_STAGE_LOST' })
    await turn()
    expect(engine.entries.size).toBe(0)
  })
})

describe('timers', () => {
  it('are gone once everything is released', async () => {
    frozenClocks()
    const { store, engine } = await joined()
    const receipt = await store.put(bytes(100))
    const pin = await store.pin(receipt.key)
    await receipt.release()
    await pass(engine, 1_000)
    expect(engine.count('renew')).toBe(1)
    await pin?.release()
    // The row ends within 50 ms, and the deadlines of that call with their next tick.
    await pass(engine, 150)
    expect(vi.getTimerCount(), 'but for the maintenance that a put has called for').toBe(1)
    await pass(engine, 10 * TTL)
    expect(engine.count('renew')).toBe(1)
    await store.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('are gone after a close that found pins held, also when the catalog was away', async () => {
    for (const isAway of [false, true]) {
      frozenClocks()
      const { store, engine } = await joined()
      const receipt = await store.put('a')
      if (isAway) engine.every('release', async () => Promise.reject(new Error('unreachable')))
      const renewals = engine.count('renew')
      await store.close()
      expect(vi.getTimerCount(), `away: ${isAway}`).toBe(0)
      await pass(engine, 10 * TTL)
      expect(engine.count('renew')).toBe(renewals)
      expect([receipt.pin?.held, receipt.pin?.signal.aborted]).toEqual([false, false])
      await receipt.release()
      expect(vi.getTimerCount()).toBe(0)
    }
  })
})

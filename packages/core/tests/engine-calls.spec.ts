/** One call into an engine: a deadline, one shape for every failure, and nothing left of what comes late. */
import { describe, expect, it, vi } from 'vitest'
import { Deadlines, type Ticket } from '../src/deadlines.js'
import { EngineFault, type ErrorCode } from '../src/engine.js'
import { EngineError, openStore, PoolRefusedError } from '../src/index.js'
import { ABSENT, bytes, NOTHING, opened, rejection, turn, within } from './opened.js'
import { Scripted } from './scripted-engine.js'

/** Above one deadline of the stores here (150 ms and a tick of 50), below two. */
const ONE_DEADLINE_MS = 290
/** A writer's failed call is followed by its discard, a reader's by its end, a failed opening by the closing: each has a deadline of its own. */
const TWO_DEADLINES_MS = 490
const FOLLOWED = new Set(['write', 'seal', 'body.read'])
const source = { name: 'app', live: () => [] }

describe('deadlines', () => {
  it('fire once the time has passed, not before, each by itself, and stop their timer when none is left', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    try {
      const deadlines = new Deadlines()
      const fired: string[] = []
      const from = performance.now()
      deadlines.watch(from + 100, () => fired.push('a'))
      const ended = deadlines.watch(from + 100, () => fired.push('never'))
      deadlines.watch(from + 400, () => fired.push('b'))
      vi.advanceTimersByTime(90)
      expect(fired).toEqual([])
      deadlines.end(ended)
      deadlines.end(ended)
      vi.advanceTimersByTime(70)
      expect(fired).toEqual(['a'])
      vi.advanceTimersByTime(400)
      expect(fired).toEqual(['a', 'b'])
      expect(vi.getTimerCount()).toBe(0)
      deadlines.watch(performance.now() + 50, () => fired.push('c'))
      expect(vi.getTimerCount()).toBe(1)
      deadlines.stop()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a deadline that has ended', () => {
  it.each([0, 1, 2])('leads to no other, wherever among them it was: number %i', ended => {
    const deadlines = new Deadlines()
    const tickets = [0, 1, 2].map(() => deadlines.watch(Infinity, () => {}))
    const ticket = tickets[ended] as Ticket
    deadlines.end(ticket)
    // A call that hangs holds its ticket as long as it does.
    expect([ticket.previous, ticket.next]).toEqual([undefined, undefined])
    const [first, second] = tickets.filter(each => each !== ticket)
    expect(first?.next).toBe(second)
    expect(second?.previous).toBe(first)
    deadlines.stop()
  })
})

describe('a step that hangs', () => {
  it.each<[string, (opened: Awaited<ReturnType<typeof prepared>>) => Promise<unknown>, string]>([
    ['read', ({ store, small }) => store.get(small), 'transient'],
    ['find', ({ store, small }) => store.has(small), 'transient'],
    ['list', ({ store }) => store.list().next(), 'transient'],
    ['explain', ({ store, small }) => store.why(small), 'transient'],
    ['usage', ({ store }) => store.usage(), 'transient'],
    ['publish', ({ store }) => store.put('other'), 'outcome-unknown'],
    ['pin', ({ store, small }) => store.pin(small), 'outcome-unknown'],
    ['stage', ({ store }) => store.put(bytes(99)), 'outcome-unknown'],
    ['create', ({ store }) => store.put(bytes(99)), 'outcome-unknown'],
    ['staged', ({ store }) => store.put(bytes(99)), 'transient'],
    ['write', ({ store }) => store.put(bytes(99)), 'outcome-unknown'],
    ['seal', ({ store }) => store.put(bytes(99)), 'outcome-unknown'],
    ['body.read', async ({ store, large }) => (await store.get(large))?.bytes(), 'transient'],
    ['mark', ({ store, small }) => store.delete(small), 'outcome-unknown'],
    ['remove', ({ store, small }) => store.delete(small), 'outcome-unknown'],
    ['renew', ({ store, small }) => store.delete(small), 'outcome-unknown'],
    ['lease', ({ store }) => store.sweep(), 'outcome-unknown'],
    ['maintain', ({ store }) => store.sweep(), 'outcome-unknown'],
    ['candidates', ({ store }) => store.sweep(), 'transient'],
    ['stageCandidates', ({ store }) => store.sweep(), 'outcome-unknown'],
    ['due', ({ store }) => store.sweep(), 'transient'],
    ['trash', ({ store }) => store.maintain(), 'transient'],
    ['scan', ({ store }) => store.maintain({ scan: true }), 'transient']
  ])('%s: the call rejects within its deadline, and close does not hang on it', async (step, call, kind) => {
    const all = await prepared()
    const gate = all.engine.gate(step)
    const failed = rejection(call(all))
    await gate.reached
    const error = await within(FOLLOWED.has(step) ? TWO_DEADLINES_MS : ONE_DEADLINE_MS, failed)
    expect(error).toBeInstanceOf(EngineError)
    expect(error).toMatchObject({ kind, transient: kind === 'transient', code: 'ERR_BLOB_ENGINE' })
    expect(await within(2_000, all.store.close())).not.toBe('hangs')
    expect(all.engine.closed).toEqual(expect.arrayContaining(['kv', 'large']))
  })

  it.each(['lease.release', 'kv.close', 'large.close'])('%s: close does not hang on it', async step => {
    const { store, engine } = await prepared()
    engine.gate(step)
    const swept = store.sweep().catch(() => {})
    expect(await within(2_000, swept)).not.toBe('hangs')
    expect(
      await within(
        2_000,
        store.close().catch(() => {})
      )
    ).not.toBe('hangs')
  })

  it('meta.read: opening rejects within its deadline, and what was opened is closed', async () => {
    const engine = new Scripted()
    const gate = engine.gate('meta.read')
    const opening = rejection(openStore({ kv: engine.kv, large: engine.large, operationTimeoutMs: 150 }))
    await gate.reached
    expect(await within(TWO_DEADLINES_MS, opening)).toMatchObject({ kind: 'transient' })
    expect([...engine.closed].sort()).toEqual(['kv', 'large'])
  })

  async function prepared() {
    const { store, engine } = await opened()
    const [small, large] = [await store.put('small'), await store.put(bytes(100))]
    for (const { release } of [small, large]) await release.call(small)
    await small.release()
    await large.release()
    // A key that is pinned for as long as the store is open, so that every renewal has something to renew.
    await store.put('pinned')
    store.protect(source)
    return { store, engine, small: small.key, large: large.key }
  }
})

describe('a late answer', () => {
  it('of a lease is a lease released', async () => {
    const { store, engine } = await opened()
    await store.put('a')
    store.protect(source)
    const gate = engine.gate('lease')
    expect(await rejection(store.sweep())).toMatchObject({ operation: 'lease', kind: 'outcome-unknown' })
    gate.open()
    await turn()
    expect(engine.steps.at(-1)).toBe('lease.release')
    expect(engine.leased).toBe(false)
    expect((await store.sweep()).aborted).toBeUndefined()
  })

  it.each(['kv', 'large'])("that cannot be freed is nobody's unhandled rejection (%s)", async tier => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    try {
      const { store, engine } = await opened()
      await store.put('a')
      store.protect(source)
      const gate = engine.gate(tier === 'kv' ? 'lease' : 'create')
      engine.failBefore(tier === 'kv' ? 'lease.release' : 'writer.discard')
      await rejection(tier === 'kv' ? store.sweep() : store.put(bytes(99)))
      gate.open()
      await turn()
      await turn()
      expect(engine.count(tier === 'kv' ? 'lease.release' : 'writer.discard')).toBe(1)
      expect(unhandled).not.toHaveBeenCalled()
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  })

  it('of a writer is a writer discarded', async () => {
    const { store, engine } = await opened()
    const gate = engine.gate('create')
    expect(await rejection(store.put(bytes(99)))).toMatchObject({ operation: 'create' })
    gate.open()
    await turn()
    expect(engine.count('writer.discard')).toBe(1)
    expect(engine.residue).toEqual(NOTHING)
  })

  it('of a seal is a body discarded', async () => {
    const { store, engine } = await opened()
    const gate = engine.gate('seal')
    expect(await rejection(store.put(bytes(99)))).toMatchObject({ operation: 'seal' })
    gate.open()
    await turn()
    await turn()
    expect(engine.residue).toEqual(NOTHING)
  })

  it('of a write comes before the discard: a writer is called one method at a time', async () => {
    for (const step of ['write', 'seal']) {
      const { store, engine } = await opened()
      const gate = engine.gate(step)
      await rejection(store.put(bytes(99)))
      gate.open()
      await turn()
      await turn()
      expect(engine.overlaps, step).toEqual([])
      expect(engine.residue, step).toEqual(NOTHING)
    }
  })

  it('of a publication leaves its pin to the release', async () => {
    const { store, engine } = await opened()
    const gate = engine.gate('publish')
    expect(await rejection(store.put('a'))).toMatchObject({ kind: 'outcome-unknown' })
    gate.open()
    await turn()
    expect(engine.entries.size).toBe(1)
    expect(store.pins()).toEqual([])
    await store.close()
    expect(engine.pins.size).toBe(0)
  })

  it('that is a failure changes nothing', async () => {
    const { store, engine } = await opened()
    const gate = engine.gate('usage')
    const error = await rejection(store.usage())
    gate.fail(new Error('late'))
    await turn()
    expect(error).toMatchObject({ kind: 'transient' })
  })
})

describe('a failure', () => {
  const KINDS: ErrorCode[] = [
    'conflict',
    'transient',
    'exhausted',
    'full',
    'denied',
    'corrupt',
    'gone',
    'outcome-unknown',
    'unknown'
  ]

  it.each(KINDS)(
    'that the engine calls %s is an EngineError of that kind, with its cause and what to do',
    async kind => {
      const { store, engine } = await opened()
      const cause = new EngineFault(kind, 'driver says so')
      engine.failBefore('publish', cause)
      const error = await rejection(store.put('a'))
      expect(error).toBeInstanceOf(EngineError)
      expect(error).toMatchObject({ engine: 'scripted', operation: 'publish', kind, cause, key: expect.any(String) })
      expect(error.transient).toBe(['conflict', 'transient', 'exhausted'].includes(kind))
      expect(error.message.length).toBeGreaterThan('scripted failed at publish: '.length)
    }
  )

  it.each<ErrorCode>(['newer', 'foreign'])('that the engine calls %s refuses the pool', async kind => {
    const { store, engine } = await opened()
    engine.failBefore('publish', new EngineFault(kind, 'driver says so'))
    expect(await rejection(store.put('a'))).toBeInstanceOf(PoolRefusedError)
  })

  it('thrown before there is a promise is like any other', async () => {
    const { store, engine } = await opened()
    const cause = new Error('sync')
    engine.next('usage', () => {
      throw cause
    })
    expect(await rejection(store.usage())).toMatchObject({ code: 'ERR_BLOB_ENGINE', cause })
  })

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'text'],
    ['an object', { code: 'X' }]
  ])('that is no Error is one: %s', async (_, thrown) => {
    const { store, engine } = await opened()
    engine.failBefore('usage', thrown as Error)
    engine.next('usage', async () => {
      throw thrown
    })
    expect(await rejection(store.usage())).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
  })

  it('that the engine cannot classify still rejects the call', async () => {
    const { store, engine } = await opened()
    engine.classify = () => {
      throw new Error('no idea')
    }
    engine.failBefore('usage')
    expect(await within(ONE_DEADLINE_MS, rejection(store.usage()))).toMatchObject({ kind: 'unknown' })
  })

  it("named AbortError that is not the caller's own is the engine's", async () => {
    const { store, engine } = await opened()
    engine.failBefore('usage', new DOMException('the driver gave up', 'AbortError'))
    expect(await rejection(store.usage())).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
  })
})

describe('a signal', () => {
  it.each<[string, unknown]>([
    ['an error', new Error('mine')],
    ['a string', 'mine'],
    ['a TimeoutError', new DOMException('late', 'TimeoutError')]
  ])('that fires during a call rejects it with its own reason, unwrapped: %s', async (_, reason) => {
    const { store, engine } = await opened()
    const abort = new AbortController()
    engine.next('read', async (_effect, call) => {
      abort.abort(reason)
      call?.signal?.throwIfAborted()
    })
    expect(await store.get(ABSENT, { signal: abort.signal }).catch(error => ({ error }))).toEqual({ error: reason })
  })

  it('that has fired begins no call at all', async () => {
    const { store, engine } = await opened()
    const before = engine.steps.length
    const signal = AbortSignal.abort(new Error('mine'))
    const calls = [
      () => store.put('a', { signal }),
      () => store.get(ABSENT, { signal }),
      () => store.stat(ABSENT, { signal }),
      () => store.has(ABSENT, { signal }),
      () => store.hasMany([ABSENT], { signal }),
      () => store.list({ signal }).next(),
      () => store.delete(ABSENT, { signal }),
      () => store.deleteMany([ABSENT], { signal }),
      () => store.pin(ABSENT, { signal }),
      () => store.maintain({ signal }),
      () => store.verify({ signal })
    ]
    for (const call of calls) expect(await rejection(call())).toMatchObject({ message: 'mine' })
    expect(await store.sweep({ signal })).toMatchObject({ aborted: 'Cancelled', cause: { message: 'mine' } })
    expect(engine.steps.length).toBe(before)
  })

  it('that fires during a hanging read ends it at once', async () => {
    const { store, engine } = await opened({ operationTimeoutMs: 60_000 })
    const { key } = await store.put(bytes(100))
    const abort = new AbortController()
    const blob = await store.get(key, { signal: abort.signal })
    const gate = engine.gate('body.read')
    const read = rejection(blob?.bytes() as Promise<unknown>)
    await gate.reached
    abort.abort(new Error('mine'))
    expect(await within(1_000, read)).toMatchObject({ message: 'mine' })
    gate.open()
    await turn()
    await turn()
    expect(engine.open).toBe(0)
  })
})

describe('closing', () => {
  it.each(['kv', 'large'])('closes both engines when %s fails to close, and says so', async tier => {
    const { store, engine } = await opened()
    engine.failAfter(`${tier}.close`)
    await rejection(store.close())
    expect([...engine.closed].sort()).toEqual(['kv', 'large'])
  })

  it('waits for an engine call under way before it closes the engine', async () => {
    const { store, engine } = await opened({ operationTimeoutMs: 60_000 })
    const gate = engine.gate('publish')
    const put = store.put('a')
    await gate.reached
    const closed = store.close()
    await turn()
    expect(engine.closed).toEqual([])
    gate.open()
    expect((await put).created).toBe(true)
    await closed
    expect([...engine.closed].sort()).toEqual(['kv', 'large'])
    expect(engine.pins.size).toBe(0)
  })

  it('after a failed opening has closed what was opened', async () => {
    const engine = new Scripted()
    const kv = {
      name: 'broken',
      open: async () => {
        throw new EngineFault('denied', 'no')
      }
    }
    expect(await rejection(openStore({ kv, large: engine.large }))).toMatchObject({
      code: 'ERR_BLOB_ENGINE',
      kind: 'denied'
    })
    expect(engine.closed).toEqual(['large'])
  })
})

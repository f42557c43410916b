// The plan and the wrapper over an engine that does nothing but answer.
import type { BodyStore, BodyWriter, Call, Catalog, Engine, EngineDefinition, Lease } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import {
  during,
  everyFailure,
  type Fault,
  FaultPlan,
  ForgottenFault,
  faulty,
  isInjected,
  Ledger,
  partsOf,
  systemError,
  UnfiredFault
} from '../src/index.js'

const within = (ms: number): Call => ({ deadlineMs: performance.now() + ms })
const context = { algorithm: 'sha256', lockTimeoutMs: 1, connectTimeoutMs: 1 } as const

/** Knows its lease by identity, keeps private fields, and says what was asked of it. */
class Plain {
  readonly #asked: string[]
  readonly held: object = { release: async () => void this.#asked.push('release'), lost: new AbortController().signal }

  constructor(asked: string[]) {
    this.#asked = asked
  }

  get catalog(): Catalog {
    const asked = this.#asked
    return {
      meta: { read: async () => undefined, compareAndSet: async () => true },
      usage: async () => void asked.push('usage'),
      find: async () => void asked.push('find'),
      lease: async () => this.held as Lease,
      due: async (lease: Lease) => void asked.push(lease === this.held ? 'its own lease' : 'another lease')
    } as unknown as Catalog
  }

  get bodies(): BodyStore {
    const asked = this.#asked
    const writer = (): BodyWriter => ({
      write: async chunk => void asked.push(`write ${chunk.length}`),
      seal: async () => 'locator' as never,
      discard: async () => void asked.push('discard')
    })
    return {
      create: async () => writer(),
      async *read() {
        try {
          for (let n = 0; n < 4; n++) yield new Uint8Array(10)
        } finally {
          asked.push('closed')
        }
      }
    } as unknown as BodyStore
  }
}

function setUp() {
  const asked: string[] = []
  const ledger = new Ledger()
  const plan = new FaultPlan(ledger)
  const plain = new Plain(asked)
  const engine = {
    name: 'plain',
    catalog: plain.catalog,
    bodies: plain.bodies,
    close: async () => {}
  } as unknown as Engine
  const definition: EngineDefinition = { name: 'plain', open: async () => engine }
  return { asked, ledger, plan, open: () => faulty(definition, plan).open(context) }
}
const fail: Fault['how'] = { kind: 'fail', error: () => systemError('ENOSPC') }

async function readAll(bodies: BodyStore): Promise<number> {
  let length = 0
  for await (const chunk of bodies.read('locator' as never, { start: 0, end: 40 }, within(1_000)))
    length += chunk.length
  return length
}

describe('a fault', () => {
  it('strikes the nth call of its point, once, and says where', async () => {
    const { plan, open, asked } = setUp()
    const { catalog } = await open()
    const armed = plan.arm({ at: 'catalog.usage', nth: 2, how: fail })
    await catalog?.usage(within(100))
    const error = await during('sweep', async () => catalog?.usage(within(100))).catch(error => error)
    expect([error.code, isInjected(new Error('wrapped', { cause: error }))]).toEqual(['ENOSPC', true])
    await catalog?.usage(within(100))
    expect(asked).toEqual(['usage', 'usage'])
    expect(armed.struck).toMatchObject([{ point: 'catalog.usage', engine: 'plain', operation: 'sweep' }])
    armed.finish()
  })

  it('after the effect lets it happen', async () => {
    const { plan, open, asked } = setUp()
    const { catalog } = await open()
    const armed = plan.arm({ at: 'catalog.usage', when: 'after', how: fail })
    await expect(catalog?.usage(within(100))).rejects.toThrow('ENOSPC')
    expect(asked).toEqual(['usage'])
    armed.finish()
  })

  it('for good strikes until it is finished', async () => {
    const { plan, open } = setUp()
    const { catalog } = await open()
    const armed = plan.arm({ lasting: 'for good', how: fail })
    for (let n = 0; n < 3; n++) await expect(catalog?.usage(within(100))).rejects.toThrow()
    armed.finish()
    await catalog?.usage(within(100))
  })

  it('of opening and closing strikes there', async () => {
    const { plan, open } = setUp()
    const first = plan.arm({ at: 'definition.open', how: fail })
    await expect(open()).rejects.toThrow('ENOSPC')
    first.finish()
    const second = plan.arm({ at: 'engine.close', how: fail })
    await expect((await open()).close()).rejects.toThrow('ENOSPC')
    second.finish()
  })

  it('delays, and hangs until the deadline, the signal, or its own end', async () => {
    const { plan, open } = setUp()
    const { catalog } = await open()
    const delay = plan.arm({ how: { kind: 'delay', ms: 60 } })
    const start = performance.now()
    await catalog?.usage(within(1_000))
    expect(performance.now() - start).toBeGreaterThanOrEqual(55)
    delay.finish()
    const hang = plan.arm({ lasting: 'for good', how: { kind: 'hang' } })
    await expect(catalog?.usage(within(50))).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    const stop = new AbortController()
    const aborted = catalog?.usage({ ...within(60_000), signal: stop.signal })
    stop.abort(new Error('no longer'))
    await expect(aborted).rejects.toThrow('no longer')
    const released = catalog?.usage({ deadlineMs: Number.POSITIVE_INFINITY })
    hang.finish()
    await expect(released).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  })

  it('acts before the call goes on', async () => {
    const { plan, open, asked } = setUp()
    const { catalog } = await open()
    const armed = plan.arm({ how: { kind: 'act', act: async ({ point }) => void asked.push(`act at ${point}`) } })
    await catalog?.usage(within(100))
    expect(asked).toEqual(['act at catalog.usage', 'usage'])
    armed.finish()
  })

  it('that never fires fails its finish, and one that is forgotten fails the test', async () => {
    const { plan, ledger } = setUp()
    const unfired = plan.arm({ at: 'catalog.read', how: fail })
    expect(() => unfired.finish()).toThrow(UnfiredFault)
    plan.arm({ how: fail })
    expect(() => ledger.assertFinished()).toThrow(ForgottenFault)
    expect(ledger.records.map(({ fired }) => fired)).toEqual([false, false])
  })
})

describe('a cut', () => {
  it('ends a read in the middle of a chunk, with an error, and closes what was open', async () => {
    const { plan, open, asked } = setUp()
    const { bodies } = await open()
    const armed = plan.arm({ at: 'bodies.read', how: { kind: 'cut', atByte: 25, error: () => systemError('EIO') } })
    await expect(readAll(bodies as BodyStore)).rejects.toThrow('EIO')
    expect(asked).toEqual(['closed'])
    armed.finish()
    expect(await readAll(bodies as BodyStore)).toBe(40)
  })

  it('or ends it as if it were complete', async () => {
    const { plan, open } = setUp()
    const { bodies } = await open()
    const armed = plan.arm({ at: 'bodies.read', how: { kind: 'cut', atByte: 25, short: true } })
    expect(await readAll(bodies as BodyStore)).toBe(20)
    armed.finish()
  })

  it('fails a write at its byte, over all the chunks of a body', async () => {
    const { plan, open, asked } = setUp()
    const { bodies } = await open()
    const armed = plan.arm({ at: 'bodies.writer.write', nth: 2, how: { kind: 'cut', atByte: 15 } })
    const [whole, cut] = [
      await bodies?.create('1' as never, {}, within(100)),
      await bodies?.create('2' as never, {}, within(100))
    ]
    for (let n = 0; n < 3; n++) await whole?.write(new Uint8Array(10))
    await cut?.write(new Uint8Array(10))
    await expect(cut?.write(new Uint8Array(10))).rejects.toThrow('EIO')
    expect(asked).toEqual(['write 10', 'write 10', 'write 10', 'write 10', 'write 5'])
    armed.finish()
  })
})

describe('the wrapper', () => {
  it('gives an engine back its own lease', async () => {
    const { open, asked } = setUp()
    const { catalog } = await open()
    const lease = (await catalog?.lease(within(100))) as Lease
    await catalog?.due(lease, undefined, 1, within(100))
    await lease.release()
    expect(asked).toEqual(['its own lease', 'release'])
  })

  it('offers what the engine offers', async () => {
    const { open } = setUp()
    const engine = await open()
    expect(partsOf(engine)).toEqual([
      'definition',
      'engine',
      'catalog',
      'catalog.meta',
      'catalog.lease',
      'bodies',
      'bodies.writer'
    ])
  })
})

describe('every failure', () => {
  it('fails each call in turn, and ends with a run in which nothing failed', async () => {
    const { plan, open, ledger } = setUp()
    const { catalog } = await open()
    const outcomes: string[] = []
    const strikes = await everyFailure({ plan, how: fail }, async ({ call }) => {
      const work = async () => {
        await catalog?.usage(within(100))
        await catalog?.find([], within(100))
        return 'well'
      }
      outcomes.push(`${call} ${await work().catch(error => error.code)}`)
    })
    expect(outcomes).toEqual(['1 ENOSPC', '2 ENOSPC', '3 well'])
    expect(strikes.map(({ point }) => point)).toEqual(['catalog.usage', 'catalog.find'])
    expect(ledger.records.map(({ fired }) => fired)).toEqual([true, true])
  })

  it('is bounded', async () => {
    const { plan, open } = setUp()
    const { catalog } = await open()
    const loop = everyFailure({ plan, how: fail, failuresMax: 2 }, async ({ call }) => {
      for (let n = 0; n < call; n++) await catalog?.usage(within(100)).catch(() => undefined)
    })
    await expect(loop).rejects.toThrow('more than 2 calls')
  })
})

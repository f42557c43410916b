/** Wraps an engine from outside, so that a plan stands before every method of the contract. Nothing of the engine knows of it. */
import type { BodyStore, BodyWriter, Call, Engine, EngineDefinition } from '@alkblobs/core/engine'
import type { Cut, FaultPlan } from './plan.js'
import { type FaultPoint, METHODS, type Part } from './points.js'

/** Parts that answer other parts: what a method's answer is wrapped as. */
const ANSWERS: Partial<Record<FaultPoint, Part>> = {
  'catalog.lease': 'catalog.lease',
  'catalog.joining.join': 'catalog.joining.joined',
  'bodies.create': 'bodies.writer'
} as Partial<Record<FaultPoint, Part>>

/** A fault takes its time, so what an engine could answer at once is asked by `read`, before which the plan stands. */
const NOT_AT_ONCE = { readNow: () => undefined } as const

type Method = (...args: unknown[]) => Promise<unknown>

/** A definition whose engine asks the plan before every call, and after it. One plan may stand before several engines. */
export function faulty(definition: EngineDefinition, plan: FaultPlan): EngineDefinition {
  const wrapper = new Wrapper(definition.name, plan)
  return {
    name: definition.name,
    open: async context => {
      const engine = await plan.pass({ point: 'definition.open', engine: definition.name, call: undefined }, () =>
        definition.open(context)
      )
      return wrapper.engine(engine)
    }
  }
}

/** What an engine offers: the parts that are there, and optional methods under their own names. Of an open engine; a lease is not asked for. */
export function partsOf(engine: Engine): string[] {
  const parts: string[] = ['definition', 'engine']
  const { catalog, bodies } = engine
  if (catalog !== undefined) parts.push('catalog', 'catalog.meta', 'catalog.lease')
  if (catalog?.sqlLiveness !== undefined) parts.push('catalog.sqlLiveness')
  if (catalog?.server !== undefined) parts.push('catalog.server')
  if (catalog?.joining !== undefined) parts.push('catalog.joining', 'catalog.joining.joined')
  if (bodies !== undefined) parts.push('bodies', 'bodies.writer')
  if (bodies?.reclaim !== undefined) parts.push('bodies.reclaim')
  if (bodies?.server !== undefined) parts.push('bodies.server')
  return parts
}

class Wrapper {
  readonly #engine: string
  readonly #plan: FaultPlan
  /** Engines know their own leases by identity, so what was wrapped is unwrapped on its way back. */
  readonly #inner = new WeakMap<object, object>()
  readonly #cuts = new WeakMap<object, Cut | undefined>()

  constructor(engine: string, plan: FaultPlan) {
    this.#engine = engine
    this.#plan = plan
  }

  engine(engine: Engine): Engine {
    const { catalog, bodies } = engine
    return this.#part('engine', engine, {
      ...(catalog && { catalog: this.#catalog(catalog) }),
      ...(bodies && { bodies: this.#bodies(bodies) })
    })
  }

  #catalog(catalog: NonNullable<Engine['catalog']>): NonNullable<Engine['catalog']> {
    const { meta, sqlLiveness, server, joining } = catalog
    return this.#part('catalog', catalog, {
      meta: this.#part('catalog.meta', meta),
      ...NOT_AT_ONCE,
      ...(sqlLiveness && { sqlLiveness: this.#part('catalog.sqlLiveness', sqlLiveness) }),
      ...(server && { server: this.#part('catalog.server', server) }),
      ...(joining && { joining: this.#part('catalog.joining', joining) })
    })
  }

  #bodies(bodies: BodyStore): BodyStore {
    const { server } = bodies
    return this.#part('bodies', bodies, {
      read: (...args) => this.#read(bodies, args),
      ...NOT_AT_ONCE,
      ...(server && { server: this.#part('bodies.server', server) })
    })
  }

  /** `inner` with its methods behind the plan, and some members replaced; the rest is what it was. */
  #part<T extends object>(part: Part, inner: T, replaced: { [K in keyof T]?: T[K] } = {}): T {
    const wrapped = new Map<PropertyKey, unknown>(Object.entries(replaced))
    for (const name of METHODS[part] as readonly string[]) {
      const method = Reflect.get(inner, name, inner) as Method | undefined
      if (method === undefined || wrapped.has(name)) continue
      wrapped.set(name, this.#method(`${part}.${name}` as FaultPoint, inner, method))
    }
    return new Proxy(inner, {
      get(target, property) {
        if (wrapped.has(property)) return wrapped.get(property)
        // The receiver is the real object: engines may keep private fields, which a proxy has not.
        const value: unknown = Reflect.get(target, property, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
      has: (target, property) => Reflect.has(target, property)
    })
  }

  #method(point: FaultPoint, inner: object, method: Method): Method {
    return async (...args) => {
      const where = { point, engine: this.#engine, call: callAmong(args) }
      const real = args.map(arg => this.#unwrapped(arg))
      // A system that fails to close something has let go of it all the same.
      if (point === 'engine.close') return await this.#close(where, () => method.apply(inner, real))
      if (point === 'bodies.writer.write') await this.#cutWrite(inner as BodyWriter, args[0] as Uint8Array)
      return await this.#plan.pass(where, async () => this.#answer(point, await method.apply(inner, real)))
    }
  }

  async #close(where: Parameters<FaultPlan['pass']>[0], close: () => Promise<unknown>): Promise<unknown> {
    let closing: Promise<unknown> | undefined
    const once = () => {
      closing ??= close()
      return closing
    }
    return await this.#plan.pass(where, once).finally(once)
  }

  /** What a method answers is wrapped where it has methods of its own. */
  #answer(point: FaultPoint, value: unknown): unknown {
    const part = ANSWERS[point]
    if (part === undefined || typeof value !== 'object' || value === null) return value
    const live = part === 'catalog.lease' ? (value as { live?: object }).live : undefined
    const outer = this.#part(part, value, live ? { live: this.#part('catalog.lease.live', live) } : {})
    this.#inner.set(outer, value)
    if (point === 'bodies.create') {
      const where = { point: 'bodies.writer.write', engine: this.#engine, call: undefined } as const
      this.#cuts.set(value, this.#plan.cutAt(where))
    }
    return outer
  }

  #unwrapped(value: unknown): unknown {
    return typeof value === 'object' && value !== null ? (this.#inner.get(value) ?? value) : value
  }

  /** What still fits before the cut is written, as by a medium that fails in the middle of a chunk. */
  async #cutWrite(writer: BodyWriter, chunk: Uint8Array): Promise<void> {
    const cut = this.#cuts.get(writer)
    const passed = cut?.take(chunk.length)
    if (cut === undefined || passed === undefined || passed === chunk.length) return
    if (passed > 0) await writer.write(chunk.subarray(0, passed))
    cut.end()
  }

  #read(bodies: BodyStore, args: Parameters<BodyStore['read']>): AsyncIterable<Uint8Array> {
    const where = { point: 'bodies.read', engine: this.#engine, call: args[2] } as const
    return { [Symbol.asyncIterator]: () => this.#reader(bodies.read(...args)[Symbol.asyncIterator](), where) }
  }

  /** The first pull is the call that the plan sees; a cut counts the bytes of all pulls. */
  #reader(
    inner: AsyncIterator<Uint8Array>,
    where: { readonly point: 'bodies.read'; readonly engine: string; readonly call: Call }
  ): AsyncIterator<Uint8Array> {
    const plan = this.#plan
    const end = { done: true, value: undefined } as const
    let pulls = 0
    let cut: Cut | undefined
    const pull = async (): Promise<IteratorResult<Uint8Array>> => {
      pulls += 1
      if (pulls === 1) cut = plan.cutAt(where)
      const step = pulls === 1 ? await plan.pass(where, () => inner.next()) : await inner.next()
      if (step.done === true || cut === undefined) return step
      const passed = cut.take(step.value.length)
      if (passed === step.value.length) return step
      cut.end()
      await inner.return?.()
      return end
    }
    return {
      next: () =>
        pull().catch(async (error: unknown) => {
          // Whoever pulls sees the error and never comes back, so what is open is closed here.
          await inner.return?.()
          throw error
        }),
      return: async () => {
        await inner.return?.()
        return end
      }
    }
  }
}

/** Every method that takes a call takes it last. */
function callAmong(args: readonly unknown[]): Call | undefined {
  const last = args.at(-1)
  return typeof last === 'object' && last !== null && 'deadlineMs' in last ? (last as Call) : undefined
}

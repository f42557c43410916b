/**
 * Wrapping an engine from outside: a tap sees every call that core makes of the contract, and may delay it, fail it or
 * change its answer. Rows use taps to order what runs beside what; the planted-fault engines are nothing but taps.
 */
import type { BodyStore, BodyWriter, Catalog, Engine, EngineDefinition } from '@alkblobs/core/engine'

/** Some methods of an interface, to stand in for the real ones. */
export type Overrides<T> = { [K in keyof T]?: T[K] }

/** What a tap replaces. Each function gets the real part and answers the methods that stand in for its own. */
export interface Tap {
  catalog?(inner: Catalog): Overrides<Catalog>
  bodies?(inner: BodyStore): Overrides<BodyStore>
  writer?(inner: BodyWriter): Overrides<BodyWriter>
  engine?(inner: Engine): Overrides<Engine>
}

/** `inner` with some methods replaced; everything else is forwarded, whatever the object is made of. */
export function override<T extends object>(inner: T, overrides: Overrides<T>): T {
  return new Proxy(inner, {
    get(target, property) {
      if (Object.hasOwn(overrides, property)) return overrides[property as keyof T]
      // The receiver is the real object: engines may keep private fields, which a proxy has not.
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    has: (target, property) => Object.hasOwn(overrides, property) || Reflect.has(target, property)
  })
}

/** Where `read` is replaced nothing is answered at once: it would pass the tap by. */
function withoutShortcut<T extends { read?: unknown; readNow?: unknown }>(overrides: T): T {
  if (!Object.hasOwn(overrides, 'read') || Object.hasOwn(overrides, 'readNow')) return overrides
  return { ...overrides, readNow: () => undefined }
}

function tappedBodies(bodies: BodyStore, tap: Tap): BodyStore {
  const outer = override(bodies, withoutShortcut(tap.bodies?.(bodies) ?? {}))
  const { writer } = tap
  if (writer === undefined) return outer
  return override(outer, {
    async create(...args: Parameters<BodyStore['create']>) {
      const inner = await outer.create(...args)
      return override(inner, writer(inner))
    }
  })
}

/** A definition whose engine is tapped. `tap` is called once per opened engine, so a tap may keep state. */
export function tapped(definition: EngineDefinition, tap: Tap | (() => Tap)): EngineDefinition {
  return override(definition, {
    async open(context: Parameters<EngineDefinition['open']>[0]) {
      const engine = await definition.open(context)
      const chosen = typeof tap === 'function' ? tap() : tap
      const replaced: Overrides<Engine> = { ...chosen.engine?.(engine) }
      const { catalog, bodies } = engine
      return override(engine, {
        ...replaced,
        ...(catalog === undefined
          ? {}
          : { catalog: override(catalog, withoutShortcut(chosen.catalog?.(catalog) ?? {})) }),
        ...(bodies === undefined ? {} : { bodies: tappedBodies(bodies, chosen) })
      })
    }
  })
}

/** The names of the operations of the contract that do work; the rest are properties. */
const OPERATIONS = {
  catalog: [
    'find',
    'read',
    'list',
    'explain',
    'usage',
    'stage',
    'staged',
    'unstage',
    'publish',
    'pin',
    'renew',
    'release',
    'lease',
    'candidates',
    'stageCandidates',
    'due',
    'mark',
    'remove',
    'trash',
    'known',
    'discard',
    'dropped',
    'maintain'
  ],
  bodies: ['create', 'length', 'drop', 'scan', 'claim', 'claimed']
} as const

/** An operation of the contract that a {@link watch} can see. */
export type Operation = (typeof OPERATIONS)['catalog'][number] | (typeof OPERATIONS)['bodies'][number]

/** Called around each operation: `before` may delay or fail it, `after` sees that its effect is there. */
export interface Watcher {
  before?(operation: Operation): unknown
  after?(operation: Operation): unknown
}

function watchedPart<T extends object>(inner: T, names: readonly string[], watcher: Watcher): Overrides<T> {
  const methods: [string, unknown][] = names.map(name => [
    name,
    async (...args: unknown[]) => {
      await watcher.before?.(name as Operation)
      const method = Reflect.get(inner, name, inner) as (...given: unknown[]) => unknown
      const value = await method.apply(inner, args)
      await watcher.after?.(name as Operation)
      return value
    }
  ])
  return Object.fromEntries(methods) as Overrides<T>
}

/** A `wrap` for `open` that calls the watcher around every operation of every engine of the store. */
export function watch(watcher: Watcher): (definition: EngineDefinition) => EngineDefinition {
  return definition =>
    tapped(definition, {
      catalog: inner => watchedPart(inner, OPERATIONS.catalog, watcher),
      bodies: inner => watchedPart(inner, OPERATIONS.bodies, watcher)
    })
}

/** A point at which one side waits until the other lets it go on. */
export interface Gate {
  /** Resolves when somebody waits at the gate. */
  readonly reached: Promise<void>
  /** Waits until the gate is opened; at once if it is open. */
  pass(): Promise<void>
  open(): void
}

/** A closed gate. */
export function gate(): Gate {
  let arrive = () => {}
  let open = () => {}
  const reached = new Promise<void>(resolve => {
    arrive = resolve
  })
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return {
    reached,
    async pass() {
      arrive()
      await opened
    },
    open: () => open()
  }
}

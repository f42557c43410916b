/** Steps that protect: pins, their release in any order and number, and liveness sources. */
import type { LivenessSource } from '@alkblobs/core'
import fc from 'fast-check'
import { equal } from '../../expect.js'
import { oracleOf } from '../../factory.js'
import type { SourceHealth, SourceKind, SourceModel } from '../holder.js'
import { contentNumbers, stepKind, stores } from '../step.js'
import type { HandedOut, OpenStore, ProtectionHeld, World } from '../world.js'

export const pin = stepKind<{ by: number; content: number }>({
  name: 'pin',
  args: contents => fc.record({ by: stores, content: contentNumbers(contents) }),
  toleratesReleases: true,
  async run(world, { by, content }) {
    const { store, holder } = world.at(by)
    const { pool } = world
    const taken = await store.pin(world.keyOf(content))
    const expected = pool.entries.has(content) ? { length: pool.lengthOf(content), held: true } : undefined
    equal(taken && { length: taken.length, held: taken.held }, expected, 'pin finds an entry and holds it')
    if (taken === undefined) return
    pool.protect(content, holder)
    world.hold(content, holder, taken)
  }
})

/** A receipt or pin that is held, or any that was ever handed out: released twice, late, of a store that is closed. */
export const release = stepKind<{ nth: number; which: 'held' | 'any' }>({
  name: 'release',
  args: () => fc.record({ nth: fc.nat({ max: 40 }), which: fc.constantFrom('held', 'held', 'held', 'any') }),
  toleratesReleases: true,
  canRun: (world, { which }) => releasable(world, which).length > 0,
  async run(world, { nth, which }) {
    const all = releasable(world, which)
    const { hold, thing } = all[nth % all.length] as HandedOut
    await thing.release()
    hold.holder.release(hold)
  }
})

const releasable = ({ handedOut }: World, which: 'held' | 'any') =>
  which === 'any' ? handedOut : handedOut.filter(({ hold }) => !hold.isReleased)

/** What callers hold is told the truth about: held, lost, counted. */
export const holdings = stepKind<object>({
  name: 'holdings',
  args: () => fc.constant({}),
  toleratesReleases: true,
  async run(world) {
    for (const { hold, thing } of world.handedOut) {
      const found = 'pin' in thing ? thing.pin : thing
      const isHeld = !hold.isReleased && !hold.isLost
      equal(
        { held: found?.held, lost: found?.signal.aborted },
        { held: isHeld, lost: hold.isLost },
        'a pin says what it is'
      )
    }
    for (const { store, holder } of world.open) {
      const counts = [...holder.held].map(([content, holds]) => [world.keyOf(content), holds.size] as const).sort()
      const found = store.pins().map(({ key, count }) => [key, count] as const)
      equal(found.sort(), counts, 'pins lists what a store holds, by count')
    }
  }
})

const BROKEN_SOURCE = 'the application cannot say what it references'

function keysOf(world: World, { contents, health }: SourceModel): string[] {
  if (health === 'fails') throw new Error(BROKEN_SOURCE)
  const keys: string[] = [...contents].map(content => world.keyOf(content))
  // Absent and repeated keys are harmless; what is no key is not.
  return health === 'garbles' ? [...keys, 'sha256:nonsense'] : [...keys, ...keys, `sha256:${'ab'.repeat(32)}`]
}

function sourceOf(world: World, source: SourceModel): LivenessSource {
  const { name } = source
  if (source.kind === 'live') return { name, live: () => keysOf(world, source) }
  if (source.kind === 'live-async') {
    return {
      name,
      async *live() {
        yield* keysOf(world, source)
      }
    }
  }
  return {
    name,
    async isLive(asked) {
      const all = keysOf(world, source)
      return source.health === 'garbles' ? all : all.filter(key => (asked as readonly string[]).includes(key))
    }
  }
}

async function protectTable(world: World, { store, protections }: OpenStore, contents: Set<number>) {
  const oracle = oracleOf(world.factory, store)
  const table = await oracle.application?.('text')
  if (table === undefined) throw new TypeError(`${world.factory.name} declares tables it has not`)
  await table.reference([...contents].map(content => world.keyOf(content)))
  const protection = await store.protect(table.source)
  const source: SourceModel = { name: protection.name, kind: 'table', contents, health: 'well' }
  protections.push({ source, protection, table })
  return source
}

const kinds = fc.constantFrom<SourceKind>('live', 'live-async', 'is-live', 'is-live', 'table')

export const protect = stepKind<{ by: number; kind: SourceKind; contents: readonly number[] }>({
  name: 'protect',
  args: contents =>
    fc.record({ by: stores, kind: kinds, contents: fc.uniqueArray(contentNumbers(contents), { maxLength: 3 }) }),
  toleratesReleases: true,
  canRun: ({ factory }, { kind }) => kind !== 'table' || factory.traits.includes('tables'),
  async run(world, { by, kind, contents }) {
    const at = world.at(by)
    const live = new Set(contents)
    if (kind === 'table') {
      at.holder.sources.push(await protectTable(world, at, live))
      return
    }
    const source: SourceModel = { name: `source ${++world.sources}`, kind, contents: live, health: 'well' }
    at.protections.push({ source, protection: at.store.protect(sourceOf(world, source)) })
    at.holder.sources.push(source)
  }
})

const held = (world: World) => world.open.flatMap(at => at.protections.map(protection => ({ at, ...protection })))
type Held = ProtectionHeld & { readonly at: OpenStore }
const chosen = (world: World, nth: number) => held(world)[nth % held(world).length] as Held
const anySource = fc.nat({ max: 5 })

export const unprotect = stepKind<{ nth: number }>({
  name: 'unprotect',
  args: () => fc.record({ nth: anySource }),
  toleratesReleases: true,
  canRun: world => held(world).length > 0,
  async run(world, { nth }) {
    const { at, source, protection } = chosen(world, nth)
    protection.remove()
    protection.remove()
    at.holder.sources.splice(at.holder.sources.indexOf(source), 1)
    at.protections.splice(
      at.protections.findIndex(each => each.source === source),
      1
    )
  }
})

/** The application writes a reference, or takes one back. */
export const reference = stepKind<{ nth: number; content: number; isLive: boolean }>({
  name: 'reference',
  args: contents => fc.record({ nth: anySource, content: contentNumbers(contents), isLive: fc.boolean() }),
  toleratesReleases: true,
  canRun: world => held(world).length > 0,
  async run(world, { nth, content, isLive }) {
    const { source, table } = chosen(world, nth)
    const key = [world.keyOf(content)]
    if (isLive && !source.contents.has(content)) await table?.reference(key)
    if (!isLive && source.contents.has(content)) await table?.forget(key)
    if (isLive) source.contents.add(content)
    else source.contents.delete(content)
  }
})

/** A source fails from now on, or is well again. */
export const sicken = stepKind<{ nth: number; health: SourceHealth }>({
  name: 'sicken',
  args: () => fc.record({ nth: anySource, health: fc.constantFrom<SourceHealth>('fails', 'well', 'garbles', 'well') }),
  toleratesReleases: true,
  canRun(world, { nth, health }) {
    if (held(world).length === 0) return false
    const { kind } = chosen(world, nth).source
    // In which page of a sweep a source is asked that answers in batches, and so what was done before, is the catalog's order.
    return kind !== 'table' && (kind !== 'is-live' || health === 'well' || world.setup.pageLimit === undefined)
  },
  async run(world, { nth, health }) {
    chosen(world, nth).source.health = health
  }
})

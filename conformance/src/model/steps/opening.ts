/** Steps of whole stores and of time: another store on the pool, a close, a crash, another threshold, hours that pass, damage. */
import type { Store } from '@alkblobs/core'
import fc from 'fast-check'
import { type Damage, type OpenTuning, oracleOf, type StoreFactory } from '../../factory.js'
import { thresholdsAround } from '../contents.js'
import type { EntryModel, PoolModel } from '../pool.js'
import { contentNumbers, stepKind, stores } from '../step.js'
import type { OpenStore, World } from '../world.js'

export const second = stepKind<object>({
  name: 'second',
  args: () => fc.constant({}),
  // A store that was opened before there was a pool holds the pool to the window delay it was opened with.
  canRun: ({ factory, open, pool }) => factory.second !== undefined && open.length < 2 && pool.exists,
  run: world => world.second()
})

/** How a factory brings a pool back, and what is left of it then. */
type Revival = 'reopened' | 'still in memory' | 'rebuilt from its bodies'

function revivalOf({ traits, second, reopen, foreign }: StoreFactory): Revival | undefined {
  if (reopen !== undefined) return 'reopened'
  if (second !== undefined) return 'still in memory'
  return foreign !== undefined && traits.includes('inline') ? 'rebuilt from its bodies' : undefined
}

async function revive(factory: StoreFactory, revival: Revival, store: Store, tuning: OpenTuning): Promise<Store> {
  if (revival === 'reopened') return await (factory.reopen as NonNullable<StoreFactory['reopen']>)(store, tuning)
  if (revival === 'still in memory') {
    // The other one keeps the memory alive; opened last, it would be the first to die with it.
    const next = await (factory.second as NonNullable<StoreFactory['second']>)(store, tuning)
    await store.close()
    return next
  }
  await store.close()
  const next = await (factory.foreign as NonNullable<StoreFactory['foreign']>)(store, tuning)
  // A pool in memory learns at its first look what its bodies hold.
  await next.usage()
  return next
}

/** What ends with a store: its sources, and all that it holds. A process that dies takes back nothing of what is on the medium. */
function end(pool: PoolModel, { holder, switches }: OpenStore): void {
  holder.sources.length = 0
  for (const holds of holder.held.values()) for (const hold of holds) hold.isReleased = true
  if (switches.isDead) pool.die(holder)
  else pool.pins.delete(holder)
  holder.held.clear()
  holder.released.clear()
  for (const writer of pool.writers) {
    if (writer.holder !== holder || writer.isOver) continue
    writer.isOver = true
    if (!switches.isDead) writer.stageExpiresAtMs = undefined
  }
}

/** A catalog in memory is made anew from whole bodies; halves and what is no entry go to trash. */
function rebuild(pool: PoolModel): void {
  const halves = pool.stages()
  const wasInTrash = pool.trash
  const isWhole = (content: number, { tier, held }: EntryModel) => tier === 'large' && held === pool.lengthOf(content)
  pool.trash = []
  pool.window.clear()
  pool.pins.clear()
  for (const writer of halves) {
    writer.stageExpiresAtMs = undefined
    pool.discard(undefined, 'half')
  }
  for (const { body } of wasInTrash) if (body !== 'gone') pool.discard(undefined, body)
  for (const [content, entry] of [...pool.entries]) {
    if (isWhole(content, entry)) continue
    pool.entries.delete(content)
    if (entry.tier === 'large' && entry.held !== undefined) pool.discard(undefined, 'sealed')
  }
}

/** Closes a store, or lets its process die, and opens the pool again, with the same threshold or another. */
export const restart = stepKind<{ by: number; crashes: boolean; threshold: number }>({
  name: 'restart',
  args: () => fc.record({ by: stores, crashes: fc.boolean(), threshold: fc.constantFrom(0, 0, 1, 2) }),
  canRun: ({ factory }) => revivalOf(factory) !== undefined,
  async run(world, { by, crashes, threshold }) {
    const { factory, pool } = world
    const at = world.at(by)
    const revival = revivalOf(factory) as Revival
    at.switches.isDead = crashes
    end(pool, at)
    const around = thresholdsAround(factory.threshold ?? 0)[threshold] as number
    await world.restart(at, around, (store, tuning) => revive(factory, revival, store, tuning))
    if (revival === 'rebuilt from its bodies') rebuild(pool)
  }
})

/** Closes one of two stores, or lets its process die. */
export const leave = stepKind<{ by: number; crashes: boolean }>({
  name: 'leave',
  args: () => fc.record({ by: stores, crashes: fc.boolean() }),
  canRun: ({ open }) => open.length > 1,
  async run(world, { by, crashes }) {
    const at = world.at(by)
    at.switches.isDead = crashes
    end(world.pool, at)
    world.remove(at)
    await at.store.close()
  }
})

/** One step of time in milliseconds: no multiple of it is within a minute of any life or delay. */
const TIME_STEP_MS = 7 * 60 * 1000

const canAge = ({ factory, pool }: World) => factory.traits.includes('age') && pool.exists

export const age = stepKind<{ steps: number }>({
  name: 'age',
  args: () => fc.record({ steps: fc.constantFrom(1, 2, 3, 9) }),
  canRun: canAge,
  async run(world, { steps }) {
    await oracleOf(world.factory, world.at(0).store).age?.(steps * TIME_STEP_MS)
    world.pool.nowMs += steps * TIME_STEP_MS
  }
})

/** Pin rows expire behind the back of those who hold them. */
export const expire = stepKind<{ content: number | undefined }>({
  name: 'expire',
  args: contents => fc.record({ content: fc.option(contentNumbers(contents), { nil: undefined }) }),
  canRun: canAge,
  async run(world, { content }) {
    const { pool } = world
    const key = content === undefined ? undefined : world.keyOf(content)
    await oracleOf(world.factory, world.at(0).store).expirePins?.(key)
    for (const rows of pool.pins.values())
      for (const one of rows.keys())
        if (content === undefined || one === content) rows.set(one, Number.NEGATIVE_INFINITY)
  }
})

/** The pool's window delay changes, for rows that are staged and for those to come. */
export const configure = stepKind<{ by: number; windowDelayMs: number }>({
  name: 'configure',
  args: () => fc.record({ by: stores, windowDelayMs: fc.constantFrom(0, 60 * 60 * 1000) }),
  toleratesReleases: true,
  async run(world, { by, windowDelayMs }) {
    await world.at(by).store.configure({ windowDelayMs })
    world.pool.windowDelayMs = windowDelayMs
    world.pool.exists = true
  }
})

const DAMAGES: readonly Damage[] = ['flip', 'truncate', 'remove']

/** Stored bytes are damaged behind the store's back. */
export const damage = stepKind<{ content: number; how: Damage }>({
  name: 'damage',
  args: contents => fc.record({ content: contentNumbers(contents), how: fc.constantFrom(...DAMAGES) }),
  canRun({ factory, pool }, { content, how }) {
    const entry = pool.entries.get(content)
    // Which of two bodies of one key an oracle hits is nobody's promise.
    const isOnly = pool.trash.every(trashed => trashed.content !== content)
    if (entry === undefined || pool.lengthOf(content) === 0 || pool.isDamaged(content) || !isOnly) return false
    if (entry.tier === 'kv') return factory.traits.includes('corrupt-inline') && how !== 'remove'
    return factory.traits.includes('corrupt')
  },
  async run(world, { content, how }) {
    const { pool } = world
    await oracleOf(world.factory, world.at(0).store).corrupt?.(world.keyOf(content), how)
    const entry = pool.entries.get(content) as EntryModel
    entry.isFlipped = how === 'flip'
    if (how === 'remove') entry.held = undefined
    if (how === 'truncate') entry.held = pool.lengthOf(content) - 1
  }
})

/** Steps on a catalog that write entries, pins and stages. Outcomes stand in the order of the items, and are compared there. */
import type { Entry, Publication, PublishOutcome } from '@alkblobs/core/engine'
import fc from 'fast-check'
import { equal } from '../../expect.js'
import { isSamePlace } from './catalog-pool.js'
import {
  type CatalogWorld,
  call,
  HOUR_MS,
  KEYS,
  keyOf,
  locatorOf,
  OWNERS,
  rowOf,
  STAGES,
  stageOf,
  ttlOf
} from './catalog-world.js'

export interface CatalogStep {
  canRun(world: CatalogWorld): boolean
  run(world: CatalogWorld): Promise<void>
  toString(): string
}

/** A step with drawn arguments. */
export function stepOf<Args extends object>(
  name: string,
  args: fc.Arbitrary<Args>,
  run: (world: CatalogWorld, args: Args) => Promise<void>,
  canRun: (world: CatalogWorld, args: Args) => boolean = () => true
): fc.Arbitrary<CatalogStep> {
  return args.map(given => ({
    canRun: world => canRun(world, given),
    run: world => run(world, given),
    toString: () => `${name}(${JSON.stringify(given)})`
  }))
}

export const by = fc.nat({ max: 1 })
export const key = fc.nat({ max: KEYS - 1 })
const stage = fc.nat({ max: STAGES - 1 })
const owner = fc.nat({ max: OWNERS - 1 })
const isAlive = fc.constantFrom(true, true, true, false)
/** Generations are named by how far they lie behind the latest. */
const behind = fc.nat({ max: 3 })

const publication = fc.record({
  key,
  bytes: fc.constantFrom<'none' | 'inline' | 'staged'>('none', 'inline', 'inline', 'staged', 'staged'),
  length: fc.constantFrom(0, 1, 700, 700),
  stage,
  pin: fc.option(fc.record({ owner, isAlive }), { freq: 2, nil: undefined }),
  /** Where core found the entry broken: where it lies, or where it does not. */
  healing: fc.constantFrom<'nowhere' | 'there' | 'elsewhere'>('nowhere', 'nowhere', 'there', 'elsewhere'),
  isDueAtOnce: fc.boolean()
})
type PublicationArgs = typeof publication extends fc.Arbitrary<infer T> ? T : never

function placeOf({ bytes, length, stage: n }: PublicationArgs): Entry['place'] {
  return bytes === 'staged' ? { tier: 'large', locator: locatorOf(n) } : { tier: 'kv', length }
}

function publicationOf(world: CatalogWorld, args: PublicationArgs): Publication {
  const { length, pin, isDueAtOnce } = args
  const found = world.pool.entries.get(args.key)?.place
  const other = { tier: 'large', locator: locatorOf(99) } as const
  const healing = args.healing === 'there' ? found : args.healing === 'elsewhere' ? other : undefined
  const staged = { kind: 'staged', stage: stageOf(args.stage), locator: locatorOf(args.stage) } as const
  const inline = { kind: 'inline', body: new Uint8Array(length).fill(args.key) } as const
  return {
    key: keyOf(args.key),
    length,
    bytes: args.bytes === 'none' ? { kind: 'none' } : args.bytes === 'inline' ? inline : staged,
    trashDelayMs: isDueAtOnce ? 0 : HOUR_MS,
    ...(pin && { pin: { row: rowOf(pin.owner, ++world.generation), ttlMs: ttlOf(pin.isAlive) } }),
    ...(healing && { healing })
  }
}

/** What a publication answers; the model is then as the catalog is after it. */
function published({ pool }: CatalogWorld, args: PublicationArgs, sent: Publication): PublishOutcome {
  const { key: n, length, isDueAtOnce } = args
  if (args.bytes === 'staged' && pool.stages.get(args.stage) !== true) return { outcome: 'stage-lost' }
  const found = pool.entries.get(n)
  const pin = sent.pin && { row: sent.pin.row, isAlive: args.pin?.isAlive ?? false }
  const heals = found !== undefined && sent.healing !== undefined && isSamePlace(found.place, sent.healing)
  if (found !== undefined && (args.bytes === 'none' || !heals)) {
    pool.protect(n, pin)
    return { outcome: 'existed', entry: { key: keyOf(n), ...found } }
  }
  if (args.bytes === 'none') return { outcome: 'absent' }
  if (args.bytes === 'staged') pool.stages.delete(args.stage)
  if (found?.place.tier === 'large')
    pool.discard(found.place.locator, { key: n, length: found.length, isDue: isDueAtOnce })
  const entry = { length, place: placeOf(args) }
  pool.entries.set(n, entry)
  pool.protect(n, pin)
  return { outcome: heals ? 'healed' : 'created', entry: { key: keyOf(n), ...entry } }
}

const publish = stepOf(
  'publish',
  fc.record({
    by,
    items: fc
      .uniqueArray(publication, { selector: item => item.key, minLength: 1, maxLength: 3 })
      .filter(items => new Set(items.map(item => item.stage)).size === items.length)
  }),
  async (world, { by: number, items }) => {
    const sent = items.map(item => publicationOf(world, item))
    for (const item of items) if (item.bytes === 'staged') world.published.add(item.stage)
    const outcomes = await world.at(number).publish(sent, call())
    const expected = items.map((item, i) => published(world, item, sent[i] as Publication))
    equal(outcomes, expected, 'the outcomes of a publication')
  },
  // A locator names one body for ever.
  ({ published: used }, { items }) => items.every(item => item.bytes !== 'staged' || !used.has(item.stage))
)

const pin = stepOf(
  'pin',
  fc.record({
    by,
    items: fc.uniqueArray(fc.record({ key, owner, isAlive }), {
      selector: item => item.key,
      minLength: 1,
      maxLength: 3
    })
  }),
  async (world, { by: number, items }) => {
    const { pool } = world
    const rows = items.map(item => rowOf(item.owner, ++world.generation))
    const sent = items.map((item, i) => ({
      key: keyOf(item.key),
      pin: rows[i] as (typeof rows)[number],
      ttlMs: ttlOf(item.isAlive)
    }))
    const found = await world.at(number).pin(sent, call())
    const expected = items.map((item, i) => {
      const entry = pool.entries.get(item.key)
      if (entry !== undefined) pool.protect(item.key, { row: rows[i] as (typeof rows)[number], isAlive: item.isAlive })
      return entry && { key: keyOf(item.key), ...entry }
    })
    equal(found, expected, 'pin answers the entries it has protected')
  }
)

const named = fc.uniqueArray(fc.record({ key, owner, behind }), {
  selector: item => item.key,
  minLength: 1,
  maxLength: 3
})

const renew = stepOf(
  'renew',
  fc.record({ by, pins: named, stages: fc.uniqueArray(stage, { maxLength: 3 }), revive: fc.boolean() }),
  async (world, { by: number, pins, stages, revive }) => {
    const { pool } = world
    const sent = pins.map(item => ({
      key: keyOf(item.key),
      pin: rowOf(item.owner, Math.max(1, world.generation - item.behind))
    }))
    const lives = { pinTtlMs: HOUR_MS, stageTtlMs: HOUR_MS }
    const lost = await world.at(number).renew({ pins: sent, stages: stages.map(stageOf), ...lives, revive }, call())
    const expected = sent.filter(({ pin: asked }, i) => {
      const n = (pins[i] as (typeof pins)[number]).key
      const row = pool.pins.get(n)?.get(asked.owner)
      if (row === undefined || row.generation < asked.generation || !(row.isAlive || revive)) return true
      if (!row.isAlive) pool.cancel(n)
      row.isAlive = true
      return false
    })
    const byKey = (ids: typeof expected) => ids.map(id => `${id.key} ${id.pin.owner} ${id.pin.generation}`).sort()
    equal(byKey([...lost.pins]), byKey(expected), 'renew answers the pins it did not find')
    const lostStages = stages.filter(n => pool.stages.get(n) !== true).map(stageOf)
    equal([...lost.stages].sort(), lostStages.sort(), 'renew answers the stages it did not find')
  }
)

const release = stepOf('release', fc.record({ by, pins: named }), async (world, { by: number, pins }) => {
  const { pool } = world
  const sent = pins.map(item => ({
    key: keyOf(item.key),
    pin: rowOf(item.owner, Math.max(1, world.generation - item.behind))
  }))
  await world.at(number).release(sent, call())
  for (const [i, { pin: asked }] of sent.entries()) {
    const n = (pins[i] as (typeof pins)[number]).key
    const row = pool.pins.get(n)?.get(asked.owner)
    if (row !== undefined && row.generation <= asked.generation) pool.unpin(n, asked.owner)
  }
})

const stages = fc.uniqueArray(stage, { minLength: 1, maxLength: 3 })

const stageSome = stepOf(
  'stage',
  fc.record({ by, stages, isAlive }),
  async (world, args) => {
    await world.at(args.by).stage(
      args.stages.map(n => ({ id: stageOf(n), ttlMs: ttlOf(args.isAlive) })),
      call()
    )
    for (const n of args.stages) world.pool.stages.set(n, args.isAlive)
  },
  // The id of a stage is random: it is written once, and what became of it is not written again.
  ({ pool, published: used }, args) =>
    args.stages.every(n => !pool.stages.has(n) && !used.has(n) && !pool.trash.has(stageOf(n)))
)

const staged = stepOf('staged', fc.record({ by, stages }), async (world, args) => {
  const found = await world.at(args.by).staged(args.stages.map(stageOf), call())
  const expected = args.stages.map(n => world.pool.stages.get(n) === true)
  equal(found, expected, 'staged tells which stages are there and alive')
})

const unstage = stepOf('unstage', fc.record({ by, stages }), async (world, args) => {
  const { pool } = world
  const ended = await world.at(args.by).unstage(args.stages.map(stageOf), call())
  const expected = args.stages.map(n => {
    const wasThere = pool.stages.delete(n)
    if (wasThere) pool.discard(stageOf(n), {})
    return wasThere
  })
  equal(ended, expected, 'unstage tells which stages there were')
})

const configure = stepOf('configure', fc.record({ by, windowDelayMs: fc.constantFrom(0, HOUR_MS) }), (world, args) =>
  world.configure(args.by, args.windowDelayMs)
)

/** Steps that write, and how often each is drawn. */
export const writingSteps = [
  { weight: 12, arbitrary: publish },
  { weight: 4, arbitrary: pin },
  { weight: 3, arbitrary: renew },
  { weight: 5, arbitrary: release },
  { weight: 5, arbitrary: stageSome },
  { weight: 1, arbitrary: staged },
  { weight: 2, arbitrary: unstage },
  { weight: 1, arbitrary: configure }
]

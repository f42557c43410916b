/** Steps on a catalog that look, and that drop what no entry uses. */
import type { Found, Locator, StageId } from '@alkblobs/core/engine'
import fc from 'fast-check'
import { equal } from '../../expect.js'
import type { EntryRow, TrashRow } from './catalog-pool.js'
import { by, key, stepOf } from './catalog-steps.js'
import { type CatalogWorld, call, entryOf, HOUR_MS, KEYS, keyOf, locatorOf, STAGES, stageOf } from './catalog-world.js'

const trash = stepOf('trash', fc.record({ by, limit: fc.integer({ min: 1, max: 4 }) }), async (world, args) => {
  const found: unknown[] = []
  let after: string | undefined
  for (;;) {
    const page = await world.at(args.by).trash(after, args.limit, call())
    found.push(...page)
    if (page.length < args.limit) break
    after = page.at(-1)?.what
  }
  const rows = [...world.pool.trash].filter(([, { isDue }]) => isDue).sort(([one], [other]) => (one < other ? -1 : 1))
  const expected = rows.map(([what, { key: n, length, attempts }]) => ({
    what,
    key: n === undefined ? undefined : keyOf(n),
    length,
    attempts
  }))
  equal(found, expected, 'trash that may be dropped, in the order of names')
})

const dropped = stepOf(
  'dropped',
  fc.record({ by, nth: fc.nat({ max: 5 }), retryAfterMs: fc.constantFrom(undefined, 0, 0, HOUR_MS) }),
  async (world, { by: number, nth, retryAfterMs }) => {
    const { pool } = world
    const [what, row] = [...pool.trash][nth % pool.trash.size] as [Locator | StageId, TrashRow]
    await world.at(number).dropped([{ what, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }], call())
    if (retryAfterMs === undefined) pool.trash.delete(what)
    else {
      row.attempts++
      row.isDue = retryAfterMs === 0
    }
  },
  ({ pool }) => pool.trash.size > 0
)

const foundBodies = fc.uniqueArray(fc.record({ stage: fc.nat({ max: STAGES - 1 }), key, isSealed: fc.boolean() }), {
  selector: item => item.stage,
  minLength: 1,
  maxLength: 3
})

function isKnown({ pool }: CatalogWorld, body: { stage: number; key: number; isSealed: boolean }): boolean {
  if (pool.stages.has(body.stage) || pool.trash.has(stageOf(body.stage))) return true
  if (!body.isSealed) return false
  const place = pool.entries.get(body.key)?.place
  return (place?.tier === 'large' && place.locator === locatorOf(body.stage)) || pool.trash.has(locatorOf(body.stage))
}

const bodyOf = (body: { stage: number; key: number; isSealed: boolean }): Found => ({
  stage: stageOf(body.stage),
  ...(body.isSealed && { sealed: { locator: locatorOf(body.stage), key: keyOf(body.key), length: 9, whole: true } })
})

const known = stepOf('known', fc.record({ by, bodies: foundBodies }), async (world, args) => {
  const answers = await world.at(args.by).known(args.bodies.map(bodyOf), call())
  equal(
    answers,
    args.bodies.map(body => isKnown(world, body)),
    'known tells which bodies have a row'
  )
})

const discard = stepOf('discard', fc.record({ by, bodies: foundBodies }), async (world, args) => {
  await world.at(args.by).discard(args.bodies.map(bodyOf), call())
  for (const body of args.bodies) {
    if (isKnown(world, body)) continue
    if (body.isSealed) world.pool.discard(locatorOf(body.stage), { key: body.key, length: 9 })
    else world.pool.discard(stageOf(body.stage), {})
    world.published.add(body.stage)
  }
})

const look = stepOf('look', fc.record({ by, limit: fc.integer({ min: 1, max: 5 }) }), async (world, args) => {
  const { pool } = world
  const catalog = world.at(args.by)
  const all = Array.from({ length: KEYS }, (_, n) => n)
  const expected = all.map(n => (pool.entries.has(n) ? entryOf(n, pool.entries.get(n) as EntryRow) : undefined))
  equal(await catalog.find(all.map(keyOf), call()), expected, 'find answers each key in its place')
  const page = (await catalog.list(undefined, args.limit, call())).map(entry => entry.key)
  equal(page, world.sortedKeys().map(keyOf).slice(0, args.limit), 'list answers entries in the order of keys')
  const tier = (name: string) => [...pool.entries.values()].filter(({ place }) => place.tier === name)
  const sum = (rows: EntryRow[]) => ({
    entries: rows.length,
    bytes: rows.reduce((total, { length }) => total + length, 0)
  })
  const usage = {
    kv: sum(tier('kv')),
    large: sum(tier('large')),
    pins: [...pool.pinRows()].filter(([, , { isAlive }]) => isAlive).length,
    window: pool.window.size,
    stages: pool.stages.size,
    trash: pool.trash.size
  }
  equal(await catalog.usage(call()), usage, 'usage counts rows')
})

const readOne = stepOf('read', fc.record({ by, key }), async (world, args) => {
  const { pool } = world
  const catalog = world.at(args.by)
  const entry = pool.entries.get(args.key)
  const found = await catalog.read(keyOf(args.key), call())
  const isInline = entry?.place.tier === 'kv'
  const body = isInline ? Buffer.alloc(entry.length, args.key).toString('hex') : undefined
  const text = found?.body === undefined ? undefined : Buffer.from(found.body).toString('hex')
  equal(
    { entry: found?.entry, body: text },
    { entry: entry && entryOf(args.key, entry), body },
    'read answers entry and body'
  )
  const { pins, window, ...rest } = await catalog.explain(keyOf(args.key), call())
  const row = pool.window.get(args.key)
  const owners = [...pool.pinRows()].filter(([n, , { isAlive }]) => n === args.key && isAlive).map(([, owner]) => owner)
  equal(
    {
      entry: rest.entry,
      owners: pins.map(({ owner }) => owner).sort(),
      window: window && { isCancelled: window.cancelled, isDue: window.dueInMs <= 0 }
    },
    {
      entry: entry && entryOf(args.key, entry),
      owners: owners.sort(),
      window: row && { isCancelled: row.isCancelled, isDue: pool.isDue(args.key) }
    },
    'explain tells pins and window'
  )
})

/** Steps that look and drop, and how often each is drawn. */
export const lookingSteps = [
  { weight: 2, arbitrary: trash },
  { weight: 2, arbitrary: dropped },
  { weight: 2, arbitrary: known },
  { weight: 1, arbitrary: discard },
  { weight: 3, arbitrary: look },
  { weight: 3, arbitrary: readOne }
]

/** An engine that answers what its contract rules out is stopped at, never acted on. */
import { describe, expect, it } from 'vitest'
import type { Entry } from '../src/engine.js'
import type { Store } from '../src/index.js'
import { ABSENT, bytes, opened, rejection } from './opened.js'

type Truth = readonly never[]
type Lie = [
  step: string,
  what: string,
  answer: (truth: never) => unknown,
  call: (store: Store, keys: Keys) => Promise<unknown>
]
interface Keys {
  readonly small: string
  readonly large: string
  readonly other: string
}

const other = (entry: Entry | undefined) => entry && { ...entry, key: ABSENT }

const LIES: Lie[] = [
  ['find', 'too few answers', () => [], (store, { small }) => store.has(small)],
  ['find', 'too many answers', (truth: Truth) => [...truth, ...truth], (store, { small }) => store.has(small)],
  ['find', 'an entry of another key', (truth: Truth) => truth.map(other), (store, { small }) => store.has(small)],
  [
    'find',
    'answers out of order',
    (truth: Truth) => [...truth].reverse(),
    (store, keys) => store.hasMany([keys.small, keys.large])
  ],
  ['find', 'no list', () => undefined, (store, { small }) => store.has(small)],
  [
    'read',
    'an entry of another key',
    (truth: { entry: Entry }) => ({ ...truth, entry: other(truth.entry) }),
    (store, { small }) => store.get(small)
  ],
  [
    'read',
    'an inline entry without its body',
    (truth: { entry: Entry }) => ({ entry: truth.entry }),
    (store, { small }) => store.get(small)
  ],
  [
    'read',
    'a large entry with a body',
    (truth: { entry: Entry }) => ({ ...truth, body: bytes(100) }),
    (store, { large }) => store.get(large)
  ],
  ['list', 'entries out of order', (truth: Truth) => [...truth].reverse(), store => all(store)],
  ['list', 'an entry twice', (truth: Truth) => [truth[0], ...truth], store => all(store)],
  ['list', 'an entry before its start', (truth: Truth) => truth, (store, keys) => after(store, keys)],
  ['publish', 'no outcome', () => [], store => store.put('new')],
  ['publish', 'two outcomes', (truth: Truth) => [...truth, ...truth], store => store.put('new')],
  [
    'publish',
    'an entry of another key',
    (truth: { entry: Entry }[]) => truth.map(one => ({ ...one, entry: other(one.entry) })),
    store => store.put('new')
  ],
  ['publish', '`absent` for a publication with bytes', () => [{ outcome: 'absent' }], store => store.put('new')],
  ['publish', '`stage-lost` for an inline publication', () => [{ outcome: 'stage-lost' }], store => store.put('new')],
  [
    'publish',
    '`created` for a publication without bytes',
    (truth: Truth) => [{ outcome: 'created', entry: entryOf(truth) }],
    store => store.put(bytes(100))
  ],
  [
    'publish',
    '`healed` where nothing was broken',
    (truth: { entry: Entry }[]) => [{ outcome: 'healed', entry: truth[0]?.entry }],
    store => store.put('new')
  ],
  ['publish', 'an outcome that does not exist', () => [{ outcome: 'fine' }], store => store.put('new')],
  ['pin', 'no answer', () => [], (store, { small }) => store.pin(small)],
  ['pin', 'an entry of another key', (truth: Entry[]) => truth.map(other), (store, { small }) => store.pin(small)],
  ['staged', 'no answer', () => [], store => store.put(bytes(99))],
  ['seal', 'an empty locator', () => '', store => store.put(bytes(99))],
  ['seal', 'a locator without end', () => 'x'.repeat(513), store => store.put(bytes(99))],
  ['seal', 'no locator', () => undefined, store => store.put(bytes(99))],
  [
    'body.read',
    'an empty chunk',
    () => ({ done: false, value: new Uint8Array(0) }),
    (store, { large }) => read(store, large)
  ],
  [
    'body.read',
    'more than the range',
    () => ({ done: false, value: bytes(101) }),
    (store, { large }) => read(store, large)
  ],
  [
    'body.read',
    'a chunk that is text',
    () => ({ done: false, value: 'text' }),
    (store, { large }) => read(store, large)
  ],
  ['remove', 'no outcome', () => [], (store, { other: key }) => store.delete(key)],
  [
    'candidates',
    'counts that do not add up',
    (truth: { scanned: number }) => ({ ...truth, scanned: truth.scanned + 1 }),
    store => store.sweep()
  ],
  [
    'candidates',
    'more keys than were asked for',
    () => ({
      scanned: 1_001,
      live: 0,
      alreadyStaged: 0,
      cancelled: [],
      keys: Array(1_001).fill(ABSENT),
      next: undefined
    }),
    store => store.sweep()
  ],
  [
    'candidates',
    'more keys than were asked for, together with those that are cancelled',
    () => ({
      scanned: 1_001,
      live: 0,
      alreadyStaged: 1,
      cancelled: [ABSENT],
      keys: Array(1_000).fill(ABSENT),
      next: undefined
    }),
    store => store.sweep()
  ],
  [
    'stageCandidates',
    'more keys than were asked',
    (truth: Truth) => [...truth, ABSENT, ABSENT, ABSENT, ABSENT],
    store => store.sweep()
  ],
  ['stageCandidates', 'a key that was not asked', () => [ABSENT], store => store.sweep()],
  ['drop', 'no result', () => [], store => store.maintain()],
  ['known', 'no answer', () => [], store => store.maintain({ scan: true })]
]

const entryOf = (_: Truth): Entry => ({ key: ABSENT, length: 100, place: { tier: 'kv', length: 100 } })
const all = async (store: Store) => {
  for await (const _ of store.list());
}
const after = (store: Store, keys: Keys) =>
  store.list({ after: [keys.small, keys.large, keys.other].sort().at(-1) as string }).next()
const read = async (store: Store, key: string) => (await store.get(key))?.bytes()

describe('a contract that is broken', () => {
  it.each(LIES)('at %s by %s is an EngineError that says so', async (step, what, answer, call) => {
    const { store, engine } = await opened()
    const [small, large, unpinned] = [await store.put('small'), await store.put(bytes(100)), await store.put('other')]
    await unpinned.release()
    store.protect({ name: 'app', live: () => [] })
    engine.trash.set('old', { what: 'old' as never, key: undefined, length: undefined, attempts: 0 })
    if (what === 'an entry before its start')
      engine.lie('list', () => [...engine.entries.values()].map(({ entry }) => entry))
    else engine.lie(step, answer)
    const error = await rejection(call(store, { small: small.key, large: large.key, other: unpinned.key }))
    expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'corrupt', transient: false })
    expect(error.message).toMatch(/broke its contract/)
    expect(engine.open).toBe(0)
    expect(engine.leased).toBe(false)
  })
})

describe('a record that cannot be one of ours', () => {
  const damaged = [
    { poolId: '' },
    { poolId: null },
    { protocol: null },
    { protocol: 0 },
    { algorithm: null },
    { windowDelayMs: null },
    { windowDelayMs: -1 },
    { windowDelayMs: 0.5 },
    { bodiesClaimed: null }
  ]
  it.each(damaged)('with %o is damage, and nothing is swept by it', async change => {
    const { store, engine } = await opened()
    await (await store.put('small')).release()
    store.protect({ name: 'app', live: () => [] })
    const looks = [() => store.sweep(), () => store.settings(), () => store.delete(ABSENT), () => store.maintain()]
    for (const look of looks) {
      engine.lie('meta.read', (record: object) => ({ ...record, ...change }))
      const error = await rejection(look())
      expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'corrupt' })
      expect(error.message).toContain(Object.keys(change)[0])
    }
    expect(engine.window.size).toBe(0)
    expect((await store.usage()).entries).toBe(1)
  })
})

describe('what core guarantees an engine', () => {
  it('batches are not empty and hold no key twice, and no call comes after close', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put('a')
    await store.hasMany([])
    await store.deleteMany([])
    await store.hasMany([key, key, ABSENT])
    await store.deleteMany([ABSENT, ABSENT])
    await store.close()
    await rejection(store.has(key))
    expect(engine.steps.filter(step => !step.endsWith('.close')).length).toBe(engine.steps.length - 2)
    expect(engine.steps.slice(-2).every(step => step.endsWith('.close'))).toBe(true)
    for (const { args } of engine.given) {
      if (!Array.isArray(args[0])) continue
      expect(args[0].length).toBeGreaterThan(0)
      const keys = args[0].map(item => item?.key ?? item)
      expect(new Set(keys).size).toBe(keys.length)
    }
  })

  it('a chunk does not change while it is written, and is not empty', async () => {
    const { store, engine } = await opened()
    engine.every('write', async effect => {
      await new Promise(setImmediate)
      return effect()
    })
    const source = async function* () {
      const chunk = new Uint8Array(300_000)
      for (let i = 0; i < 12; i++) {
        chunk.fill(i)
        yield new Uint8Array(0)
        yield chunk
      }
    }
    const { key } = await store.put(source())
    expect((await (await store.get(key))?.bytes())?.length).toBe(3_600_000)
    const lengths = engine.given.filter(({ step }) => step === 'write').map(({ args }) => args[0] as number)
    expect(lengths.every(length => length > 0)).toBe(true)
    expect(engine.overlaps).toEqual([])
  })
})

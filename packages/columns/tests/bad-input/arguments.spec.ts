/**
 * Every public method, every argument, every wrong kind of value: a typed error, as a rejection where the method is
 * asynchronous, before any effect. A virgin medium stays virgin, a pool keeps its every byte.
 */
import { Readable } from 'node:stream'
import { openStore, type Store } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { describe, expect, it, vi } from 'vitest'
import { EMPTY_USAGE, failureOf, mediumOf, opened, STORES, temporaryFolder } from './stores.js'
import { BAD_KEYS, GOOD_KEY, NULLISH, OBJECTS, PRIMITIVES, throwingProxy } from './wrong-values.js'

interface Call {
  readonly name: string
  readonly run: (store: Store) => unknown
  /** Whether the error may come at once rather than as a rejection. */
  readonly sync?: boolean
  /** An error of the value's own may pass. */
  readonly trap?: boolean
}

type Values = Record<string, unknown>
type Method = (...args: never[]) => unknown

const CODES = /^ERR_BLOB_INVALID_(ARGUMENT|KEY|CONTENT)$/
const everything: Values = { ...NULLISH, ...PRIMITIVES, ...OBJECTS }
const bytes = new Uint8Array(10)

const without = (values: Values, ...names: string[]): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)))

/** What an options object must not be. Any other object is one without options. */
const noOptions = { ...PRIMITIVES, 'an array': [1], 'a function': () => {} }
const noSignal = { ...PRIMITIVES, ...OBJECTS }
const noBoolean = without({ ...PRIMITIVES, ...OBJECTS }, 'true', 'false')
const noFunction = without({ ...PRIMITIVES, ...OBJECTS }, 'a function', 'a class')
const noLength = without({ ...PRIMITIVES, ...OBJECTS, '2 ** 53': 2 ** 53, '-0.5': -0.5 }, 'zero', 'a number')

function calls(
  name: string,
  values: Values,
  run: (store: Store, value: never) => unknown,
  more: Partial<Call> = {}
): Call[] {
  return Object.entries(values).map(([what, value]) => ({
    name: `${name}: ${what}`,
    run: store => run(store, value as never),
    ...more
  }))
}

const methodOf = (store: Store, method: string) =>
  (store as unknown as Record<string, Method>)[method]?.bind(store) as Method
const call =
  (method: string, ...before: unknown[]) =>
  (store: Store, value: unknown) =>
    methodOf(store, method)(...([...before, value] as never[]))
const listed = (store: Store, options: never) => store.list(options).next()

const KEYED = ['get', 'stat', 'has', 'delete', 'pin', 'why']
const badKeys = { ...everything, ...BAD_KEYS }

const keys: Call[] = [
  ...KEYED.flatMap(method => calls(`${method}(key)`, badKeys, call(method))),
  ...['hasMany', 'deleteMany'].flatMap(method => [
    ...calls(`${method}(keys)`, without(everything, 'an array', 'a Map'), call(method)),
    ...calls(`${method}([key])`, badKeys, (store, value) => call(method)(store, [value])),
    ...calls(`${method}([good, key])`, badKeys, (store, value) => call(method)(store, [GOOD_KEY, value]))
  ]),
  ...calls('list({ after })', without(badKeys, 'undefined'), (store, after) => listed(store, { after } as never)),
  ...calls('put(bytes, { expect })', without(badKeys, 'undefined'), (store, expect) => store.put(bytes, { expect })),
  ...calls('writer({ expect })', without(badKeys, 'undefined'), (store, expect) => store.writer({ expect }), {
    sync: true
  })
]

const options: Call[] = [
  ...['get', 'stat', 'has', 'delete', 'pin'].flatMap(method => [
    ...calls(`${method}(key, options)`, noOptions, call(method, GOOD_KEY)),
    ...calls(`${method}(key, { signal })`, noSignal, (store, signal) => call(method, GOOD_KEY)(store, { signal }))
  ]),
  ...['hasMany', 'deleteMany'].flatMap(method => [
    ...calls(`${method}([key], options)`, noOptions, call(method, [GOOD_KEY])),
    ...calls(`${method}([key], { signal })`, noSignal, (store, signal) => call(method, [GOOD_KEY])(store, { signal }))
  ]),
  ...['sweep', 'maintain', 'verify'].flatMap(method => [
    ...calls(`${method}(options)`, noOptions, call(method)),
    ...calls(`${method}({ signal })`, noSignal, (store, signal) => call(method)(store, { signal }))
  ]),
  ...calls('get(key, { verify })', noBoolean, (store, verify) => store.get(GOOD_KEY, { verify })),
  ...calls('list(options)', noOptions, listed),
  ...calls('list({ signal })', noSignal, (store, signal) => listed(store, { signal } as never)),
  ...calls('sweep({ dryRun })', noBoolean, (store, dryRun) => store.sweep({ dryRun })),
  ...calls('sweep({ onProgress })', noFunction, (store, onProgress) => store.sweep({ onProgress })),
  ...calls('sweep({ maxDeletes })', noLength, (store, maxDeletes) => store.sweep({ maxDeletes })),
  ...calls('sweep({ maxDurationMs })', noLength, (store, maxDurationMs) => store.sweep({ maxDurationMs })),
  ...calls('maintain({ scan })', noBoolean, (store, scan) => store.maintain({ scan })),
  ...calls('verify({ repair })', noBoolean, (store, repair) => store.verify({ repair })),
  ...calls('verify({ onProgress })', noFunction, (store, onProgress) => store.verify({ onProgress })),
  ...calls('configure(settings)', { undefined: undefined, 'an empty object': {}, ...noOptions }, call('configure')),
  ...calls('configure({ windowDelayMs })', { undefined: undefined, ...noLength }, (store, windowDelayMs) =>
    store.configure({ windowDelayMs })
  ),
  ...calls('put(bytes, options)', noOptions, call('put', bytes)),
  ...calls('writer(options)', noOptions, call('writer'), { sync: true }),
  ...[
    ['signal', noSignal],
    ['length', noLength],
    ['maxLength', noLength],
    ['onProgress', noFunction],
    ['pin', noBoolean]
  ].flatMap(([option, values]) => [
    ...calls(`put(bytes, { ${option} })`, values as Values, (store, value) =>
      store.put(bytes, { [option as string]: value })
    ),
    ...calls(`writer({ ${option} })`, values as Values, (store, value) => store.writer({ [option as string]: value }), {
      sync: true
    })
  ])
]

const contents: Call[] = [
  ...calls('put(content)', without(everything, 'the empty string', 'a string', 'a huge string'), call('put')),
  ...calls('put(used)', { Readable: Readable.from([bytes]).destroy() }, call('put'))
]

const noSource = {
  ...everything,
  'no name': { live: () => [] },
  'an empty name': { name: '', live: () => [] },
  'a name that is no string': { name: 7, live: () => [] },
  'neither question': { name: 'x' },
  'both questions': { name: 'x', live: () => [], isLive: () => [] },
  'keys instead of a question': { name: 'x', live: [GOOD_KEY] },
  'a patience of nothing': { name: 'x', live: () => [], timeoutMs: 0 },
  'a patience for ever': { name: 'x', live: () => [], timeoutMs: Number.POSITIVE_INFINITY },
  'a patience in words': { name: 'x', live: () => [], timeoutMs: '1' }
}

const sources: Call[] = calls('protect(source)', noSource, call('protect'), { sync: true })

const proxies: Call[] = [
  ...[
    'get',
    'stat',
    'has',
    'delete',
    'pin',
    'why',
    'hasMany',
    'deleteMany',
    'put',
    'sweep',
    'maintain',
    'verify',
    'configure'
  ].map(method => ({
    name: `${method}(proxy)`,
    run: (store: Store) => call(method)(store, throwingProxy()),
    trap: true
  })),
  ...['get', 'stat', 'has', 'delete', 'pin'].map(method => ({
    name: `${method}(key, proxy)`,
    run: (store: Store) => call(method, GOOD_KEY)(store, throwingProxy()),
    trap: true
  })),
  { name: 'put(bytes, proxy)', run: store => call('put', bytes)(store, throwingProxy()), trap: true },
  { name: 'list(proxy)', run: store => listed(store, throwingProxy() as never), trap: true },
  { name: 'writer(proxy)', run: store => call('writer')(store, throwingProxy()), trap: true, sync: true },
  { name: 'protect(proxy)', run: store => call('protect')(store, throwingProxy()), trap: true, sync: true }
]

/** Makes a call and looks at how it fails. */
async function judged(store: Store, { name, run, sync = false, trap = false }: Call): Promise<string | undefined> {
  let answer: unknown
  try {
    answer = run(store)
  } catch (error) {
    if (!sync) return `${name}: threw at once: ${error}`
    return isRight(error, trap) ? undefined : `${name}: ${error}`
  }
  if (sync) return `${name}: accepted`
  const error = await failureOf(() => answer)
  if (error === undefined) return `${name}: resolved`
  return isRight(error, trap) ? undefined : `${name}: ${error.name} ${error.code}: ${error.message.slice(0, 100)}`
}

function isRight(error: unknown, trap: boolean): boolean {
  const { code, message } = error as { code?: unknown; message: string }
  if (trap && message === 'trap') return true
  return typeof code === 'string' && CODES.test(code) && message.length > 10 && message.length < 300
}

async function judgedAll(store: Store, all: readonly Call[]): Promise<string[]> {
  const wrong: string[] = []
  for (const one of all) {
    const finding = await judged(store, one)
    if (finding !== undefined) wrong.push(finding)
  }
  return wrong
}

const GROUPS = { keys, options, contents, sources, proxies }

describe.each(Object.entries(STORES))('%s', (_, tiers) => {
  it.each(Object.entries(GROUPS))(
    'refuses wrong %s with a code, and leaves a virgin medium virgin',
    async (_group, all) => {
      const folder = temporaryFolder()
      const store = await opened({ ...tiers(folder), threshold: 16 })
      expect(await judgedAll(store, all)).toEqual([])
      expect(mediumOf(folder)).toEqual({})
      expect(await store.usage()).toEqual(EMPTY_USAGE)
      expect(mediumOf(folder)).toEqual({})
      expect(store.pins()).toEqual([])
    }
  )

  it('refuses all of it on a pool that holds something, and changes nothing', async () => {
    const folder = temporaryFolder()
    const store = await opened({ ...tiers(folder), ...('large' in tiers(folder) && { threshold: 16 }) })
    for (const length of [3, 100]) await (await store.put(new Uint8Array(length))).release()
    await store.maintain()
    // The rows of pins that were released go a little later, which is a change too.
    await vi.waitFor(async () => expect((await store.usage()).pins).toBe(0))
    const before = { usage: await store.usage(), medium: mediumOf(folder) }
    for (const all of Object.values(GROUPS)) expect(await judgedAll(store, all)).toEqual([])
    expect({ usage: await store.usage(), medium: mediumOf(folder) }).toEqual(before)
    const keep = store.protect({ name: 'nobody', live: () => [] })
    keep.remove()
  })

  it('refuses wrong ranges with a TypeError or a RangeError, at once', async () => {
    const store = await opened(tiers(temporaryFolder()))
    const { key } = await store.put('0123456789')
    const blob = await store.get(key)
    const numbers = ['zero', 'a number', 'a negative number', 'Infinity', 'undefined']
    for (const [name, bound] of Object.entries({ ...without(everything, ...numbers), proxy: throwingProxy() })) {
      for (const slice of [() => blob?.slice(bound as number), () => blob?.slice(0, bound as number)]) {
        const error = await failureOf(slice)
        const expected = name === 'NaN' || name === 'a fraction' ? RangeError : TypeError
        expect(error, name).toBeInstanceOf(expected)
        expect(error?.message, name).toMatch(/^(start|end) must be/)
      }
    }
  })

  it('refuses streams of anything but bytes, keeps nothing of them, and tells them to stop', async () => {
    const folder = temporaryFolder()
    const store = await opened({ ...tiers(folder), ...('large' in tiers(folder) && { threshold: 16 }) })
    for (const [name, chunk] of Object.entries(everything)) {
      for (const before of [0, 5, 100]) {
        let ended = 0
        const source = async function* () {
          try {
            if (before > 0) yield new Uint8Array(before)
            yield chunk as Uint8Array
          } finally {
            ended++
          }
        }
        expect(await failureOf(() => store.put(source())), name).toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT' })
        expect(ended, name).toBe(1)
        const writer = store.writer()
        if (before > 0) await writer.write(new Uint8Array(before))
        expect(await failureOf(() => writer.write(chunk as Uint8Array)), name).toMatchObject({
          code: 'ERR_BLOB_INVALID_CONTENT'
        })
        expect(await failureOf(() => writer.commit()), name).toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT' })
      }
    }
    expect(await store.usage()).toEqual(EMPTY_USAGE)
    const files = Object.entries(mediumOf(folder)).filter(
      ([path, kind]) => path.startsWith('large/') && kind !== 'folder'
    )
    expect(files.map(([path]) => path).filter(path => !/^large\/(alkblobs\.json|lock\.\d+)$/.test(path))).toEqual([])
  })
})

describe('openStore', () => {
  const OPTIONS: Record<string, Values> = {
    kv: everything,
    large: without(everything, 'undefined'),
    threshold: noLength,
    derivation: without({ ...everything, md5: 'md5', 'upper case': 'BLAKE3' }, 'undefined'),
    windowDelayMs: noLength,
    trashDelayMs: { ...noLength, 'too long': 2 ** 31 },
    pinTtlMs: { ...noLength, zero: 0 },
    stageTtlMs: { ...noLength, zero: 0 },
    maxLength: noLength,
    putsMax: { ...noLength, zero: 0 },
    operationTimeoutMs: { ...noLength, zero: 0 },
    lockTimeoutMs: { ...noLength, zero: 0 },
    connectTimeoutMs: { ...noLength, zero: 0 },
    drainMs: noLength,
    verify: noBoolean,
    instanceId: without({ ...everything, 'a slash': 'a/b', '65 letters': 'x'.repeat(65) }, 'undefined', 'a string')
  }

  it.each(Object.entries(OPTIONS))('refuses every wrong %s, naming it, and makes nothing', async (option, values) => {
    for (const tiers of Object.values(STORES)) {
      const folder = temporaryFolder()
      for (const [name, value] of Object.entries(values)) {
        const error = await failureOf(() => openStore({ ...tiers(folder), [option]: value }))
        expect(error, name).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT', argument: option })
      }
      expect(mediumOf(folder)).toEqual({})
    }
  })

  it.each(Object.entries(everything))('refuses %s in the place of its options', async (_, value) => {
    expect(await failureOf(() => openStore(value as never))).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
  })

  it.each<[string, unknown]>([
    ['opens to undefined', { name: 'x', open: async () => undefined }],
    ['opens without a promise', { name: 'x', open: () => 7 }],
    [
      'throws at once',
      {
        name: 'x',
        open: () => {
          throw new Error('x')
        }
      }
    ],
    ['has no name', { open: async () => ({}) }],
    ['opens to an empty object', { name: 'x', open: async () => ({}) }]
  ])('refuses an engine that %s, with a code', async (_, engine) => {
    for (const tiers of [{ kv: engine }, { kv: mem(), large: engine }]) {
      expect(await failureOf(() => openStore(tiers as never))).toMatchObject({
        code: expect.stringMatching(/^ERR_BLOB_/)
      })
    }
  })

  it('refuses engines that are not of that tier', async () => {
    const folder = temporaryFolder()
    const wrong = [{ kv: local({ root: folder }) }, { kv: mem(), large: mem() }]
    for (const options of wrong) {
      expect(await failureOf(() => openStore(options))).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
    }
    expect(mediumOf(folder)).toEqual({})
  })
})

describe('engines', () => {
  const OWN: [string, (value: never) => unknown, Values][] = [
    ['sqlite(config)', sqlite, without(everything)],
    [
      'sqlite({ file })',
      file => sqlite({ file }),
      without({ ...everything, NUL: 'a\0b', memory: ':memory:', URI: 'file:x' }, 'a string', 'a huge string')
    ],
    [
      'sqlite({ durability })',
      durability => sqlite({ file: 'x', durability }),
      without({ ...everything, process: 'process' }, 'undefined')
    ],
    ['local(config)', local, without(everything)],
    ['local({ root })', root => local({ root }), without({ ...everything, NUL: 'a\0b' }, 'a string', 'a huge string')],
    [
      'local({ openMax })',
      openMax => local({ root: 'x', openMax }),
      without({ ...everything, 'too few': 3, 'too many': 65_537 }, 'undefined', 'a number')
    ],
    ['mem(config)', mem, without(noOptions)],
    ['mem({ medium })', medium => mem({ medium }), without(everything, 'undefined')]
  ]

  it.each(OWN)('%s refuse what they cannot use with one and the same kind of error', (_, make, values) => {
    for (const [name, value] of Object.entries(values)) {
      expect(() => make(value as never), name).toThrow(
        expect.objectContaining({ code: 'ERR_BLOB_INVALID_ARGUMENT', argument: expect.any(String) })
      )
    }
  })
})

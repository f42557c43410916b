/** Whatever somebody may say about a store, a put or a source: taken as it is written down here, or refused by a typed error. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configOf, type StoreOptions, windowDelayOf } from '../src/config.js'
import { BlobError } from '../src/errors.js'
import { ALGORITHMS, isKey } from '../src/key.js'
import { type PutOptions, putRequestOf } from '../src/put-options.js'
import { assertSource, assertTable, type LivenessSource, type TableSource } from '../src/sweep/liveness.js'

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    0,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 31,
    2 ** 53,
    '',
    '1',
    true,
    [],
    {}
  ),
  fc.constantFrom<unknown>('toString', '__proto__', Symbol('odd'), 2n ** 64n, () => 1),
  fc.anything()
)
/** A value that is right, and once in so many times one that is not. */
const mostly = (right: fc.Arbitrary<unknown>, weight = 8) =>
  fc.oneof({ weight, arbitrary: right }, { weight: 1, arbitrary: odd })
/** For records of many options, which one wrong value spoils. */
const nearly = (right: fc.Arbitrary<unknown>) => mostly(right, 25)

/** What is taken, or `undefined` for a typed error with something to say; anything else fails the property. */
function taken<T>(parse: () => T): { readonly value: T } | undefined {
  try {
    return { value: parse() }
  } catch (error) {
    if (error instanceof BlobError && error.message !== '' && error.code.startsWith('ERR_BLOB_')) return undefined
    throw error
  }
}

const isWhole =
  (least: number, most = Number.MAX_SAFE_INTEGER) =>
  (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const TIMER_MAX = 2 ** 31 - 1
const TEN_YEARS_MS = 315_360_000_000
const isLabel = (value: unknown) => typeof value === 'string' && /^[A-Za-z0-9_.-]{1,64}$/.test(value)
const isEngine = (value: unknown) => isObject(value) && typeof Reflect.get(value, 'open') === 'function'

/** By name: whether a value that is there may be. */
const OPTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  kv: isEngine,
  large: isEngine,
  threshold: isWhole(0),
  derivation: value => ALGORITHMS.includes(value as never),
  windowDelayMs: isWhole(0, TEN_YEARS_MS),
  trashDelayMs: isWhole(0, TIMER_MAX),
  pinTtlMs: isWhole(1, TIMER_MAX),
  stageTtlMs: isWhole(1, TIMER_MAX),
  maxLength: isWhole(0),
  putsMax: isWhole(1),
  operationTimeoutMs: isWhole(1, TIMER_MAX),
  lockTimeoutMs: isWhole(1, TIMER_MAX),
  connectTimeoutMs: isWhole(1, TIMER_MAX),
  drainMs: isWhole(0, TIMER_MAX),
  verify: value => typeof value === 'boolean',
  instanceId: isLabel,
  fleet: value => isObject(value) && !Array.isArray(value)
}

const engine = { name: 'none', open: async () => Promise.reject(new Error('nothing is opened here')) }
const engines = fc.constantFrom<unknown>(engine, Object.create(engine))
const edges = fc.constantFrom(0, 1, 2, 3, TIMER_MAX - 1, TIMER_MAX, TIMER_MAX + 1, TEN_YEARS_MS, TEN_YEARS_MS + 1)
const numbers = fc.oneof({ weight: 1, arbitrary: edges }, { weight: 6, arbitrary: fc.integer({ min: 3, max: 10_000 }) })
const labels = fc.oneof(
  fc.constantFrom('web-7', 'a'.repeat(64), 'a'.repeat(65), 'a b', ''),
  fc.string({ maxLength: 4 })
)
const fleets = fc.record(
  {
    pinTtlMs: mostly(numbers),
    instanceId: mostly(labels),
    sharedMedia: mostly(fc.constant('operator-declared'))
  },
  { requiredKeys: [] }
)
const numeric = Object.keys(OPTIONS).filter(name => /Ms$|Max$|^threshold$|^maxLength$/.test(name))
const options = fc.record(
  {
    kv: nearly(engines),
    large: nearly(engines),
    derivation: nearly(fc.constantFrom(...ALGORITHMS)),
    verify: nearly(fc.boolean()),
    instanceId: nearly(labels),
    fleet: nearly(fleets),
    ...Object.fromEntries(numeric.map(name => [name, nearly(numbers)]))
  },
  { requiredKeys: ['kv'] }
)

const isThere = <T>(value: T | undefined): value is T => value !== undefined

function mayOpen(given: Record<string, unknown>): boolean {
  const { fleet, pinTtlMs } = given
  const areRight = Object.entries(OPTIONS).every(([name, isRight]) => !isThere(given[name]) || isRight(given[name]))
  if (!isEngine(given.kv) || !areRight) return false
  if (!isThere(fleet)) return true
  const { pinTtlMs: ttl = pinTtlMs, sharedMedia, instanceId: label } = fleet as Record<string, unknown>
  const isShared = sharedMedia === undefined || sharedMedia === 'operator-declared'
  const isNamed = !isThere(label) || isLabel(label)
  return isShared && isNamed && (ttl === undefined || isWhole(3, TIMER_MAX)(ttl))
}

describe('the options of a store', () => {
  it('are taken exactly if each of them may be, and come out as they went in', () => {
    let opened = 0
    fc.assert(
      fc.property(options, given => {
        const found = taken(() => configOf(given as unknown as StoreOptions))
        expect(found !== undefined).toBe(mayOpen(given))
        if (found === undefined) return
        opened++
        for (const name of [...numeric, 'verify', 'instanceId'].filter(each => each !== 'pinTtlMs')) {
          const [out, given_] = [Reflect.get(found.value, name), Reflect.get(given, name)]
          if (given_ !== undefined) expect(out, name).toBe(given_)
        }
      }),
      { numRuns: 2_000 }
    )
    expect(opened).toBeGreaterThan(100)
  })

  it('are an object', () => {
    fc.assert(
      fc.property(odd, given => void taken(() => configOf(given as never))),
      { numRuns: 500 }
    )
  })

  it('have a window delay of up to ten years', () => {
    fc.assert(
      fc.property(mostly(numbers), value => {
        expect(taken(() => windowDelayOf(value))?.value).toBe(isWhole(0, TEN_YEARS_MS)(value) ? value : undefined)
      })
    )
  })
})

describe('the options of a put', () => {
  const KEYS = ALGORITHMS.map(algorithm => `${algorithm}:${'0'.repeat(64)}`)
  const isRight: Readonly<Record<keyof PutOptions, (value: unknown) => boolean>> = {
    length: isWhole(0),
    expect: value => isKey(value) && value.startsWith('blake3:'),
    maxLength: isWhole(0),
    signal: value => value instanceof AbortSignal,
    onProgress: value => typeof value === 'function',
    pin: value => typeof value === 'boolean',
    verify: value => typeof value === 'boolean'
  }
  const { signal } = new AbortController()
  const puts = fc.record(
    {
      length: mostly(numbers),
      expect: mostly(fc.constantFrom(...KEYS)),
      maxLength: mostly(numbers),
      signal: mostly(fc.constant(signal)),
      onProgress: mostly(fc.constant(() => {})),
      pin: mostly(fc.boolean()),
      verify: mostly(fc.boolean())
    },
    { requiredKeys: [] }
  )

  it('are taken exactly if each of them may be; no put accepts more than its store', () => {
    fc.assert(
      fc.property(puts, fc.nat(5_000), (given, maxLength) => {
        const found = taken(() => putRequestOf(given as PutOptions, { algorithm: 'blake3', maxLength }))
        const may = Object.entries(given).every(
          ([name, value]) => value === undefined || isRight[name as keyof PutOptions](value)
        )
        expect(found !== undefined).toBe(may)
        if (found === undefined) return
        const { pin = true, verify = false, maxLength: own = maxLength, length, expect: key } = given as PutOptions
        const { onProgress } = given as PutOptions
        expect(found.value).toEqual({
          ...{ length, expect: key, pin, verify, maxLength: Math.min(own, maxLength) },
          ...{ signal: given.signal, onProgress }
        })
      }),
      { numRuns: 1_000 }
    )
  })
})

describe('what shall tell what is live', () => {
  const functions = fc.constant(() => [])

  it('is a source by its name and one of two questions, or refused', () => {
    const sources = fc.record(
      {
        name: mostly(fc.constantFrom('app', '')),
        live: mostly(functions),
        isLive: mostly(functions),
        timeoutMs: mostly(numbers)
      },
      { requiredKeys: ['name'] }
    )
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: sources }, { weight: 1, arbitrary: odd }), given => {
        const { name, live, isLive, timeoutMs } = (isObject(given) ? given : {}) as Record<string, unknown>
        const isNamed = typeof name === 'string' && name !== ''
        const asks = (typeof live === 'function') !== (typeof isLive === 'function')
        const waits = timeoutMs === undefined || isWhole(1, TIMER_MAX)(timeoutMs)
        expect(taken(() => assertSource(given as LivenessSource)) !== undefined).toBe(isNamed && asks && waits)
      }),
      { numRuns: 1_000 }
    )
  })

  it('is a table by two names, or refused', () => {
    const names = fc.constantFrom('docs', 'a.b', '', 'a\0b', 'n'.repeat(255), 'n'.repeat(256), 'ä')
    const isName = (value: unknown) => typeof value === 'string' && /^[^\0]{1,255}$/s.test(value)
    fc.assert(
      fc.property(fc.record({ table: mostly(names), column: mostly(names) }), given => {
        const found = taken(() => assertTable(given as TableSource))
        expect(found !== undefined).toBe(isName(given.table) && isName(given.column))
      }),
      { numRuns: 500 }
    )
  })
})

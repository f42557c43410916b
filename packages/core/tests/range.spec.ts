import { describe, expect, it } from 'vitest'
import { clampRange } from '../src/range.js'
import { bytes, opened } from './opened.js'

const CHUNK = 64
const SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7]

/** Bounds that the table of ranges tries on every size; each with every other. */
const boundsFor = (size: number) => [
  undefined,
  0,
  -0,
  1,
  -1,
  size - 1,
  size,
  size + 1,
  size + 100,
  -size,
  -size - 1,
  CHUNK,
  2 ** 31,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  Number.MAX_VALUE,
  Number.MIN_SAFE_INTEGER,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY
]

const WRONG_TYPES: [string, unknown][] = [
  ['null', null],
  ['a bigint', 1n],
  ['a numeric string', '1'],
  ['the empty string', ''],
  ['true', true],
  ['a symbol', Symbol('1')],
  ['an array', [1]],
  ['an object', { valueOf: () => 1 }],
  ['a Number object', new Number(1)],
  ['a Date', new Date(1)],
  ['a function', () => 1]
]

const WRONG_NUMBERS = [Number.NaN, 0.5, 1.5, -1.5, Number.MIN_VALUE, -Number.MIN_VALUE, 1e-7]

describe.each(SIZES)('ranges of %i bytes', size => {
  it("are those of an array's slice, for every pair of bounds", () => {
    const whole = new Uint8Array(size)
    for (const start of boundsFor(size)) {
      for (const end of boundsFor(size)) {
        const { start: from, end: to } = clampRange(size, start, end)
        // Not compared with Node's own Blob: its slice ends the process at bounds past 2^53 (seen in 20.20).
        expect(to - from, `${start}, ${end}`).toBe(whole.slice(start, end).length)
        expect(from >= 0 && from <= to && to <= size, `${start}, ${end}: ${from} to ${to}`).toBe(true)
      }
    }
  })

  it('give the same bytes as an array through a stored blob, in either tier', async () => {
    const content = bytes(size)
    for (const threshold of [0, 1_000]) {
      const { store, engine } = await opened({ threshold })
      engine.readLength = CHUNK
      const { key } = await store.put(content)
      const blob = await store.get(key)
      for (const start of boundsFor(size)) {
        for (const end of [0, 1, size - 1, size, size + 1, -1, Number.POSITIVE_INFINITY]) {
          const part = blob?.slice(start, end)
          const expected = content.slice(start, end)
          expect(part?.size, `${start}, ${end}`).toBe(expected.length)
          expect(await part?.bytes(), `${start}, ${end}`).toEqual(expected)
        }
      }
      expect(engine.open).toBe(0)
    }
  })
})

describe('bounds', () => {
  it.each(WRONG_TYPES)('that are %s are a TypeError', (_, bound) => {
    expect(() => clampRange(10, bound as number)).toThrow(TypeError)
    expect(() => clampRange(10, 0, bound as number)).toThrow(TypeError)
  })

  it.each(WRONG_NUMBERS)('of %d are a RangeError', bound => {
    expect(() => clampRange(10, bound)).toThrow(RangeError)
    expect(() => clampRange(10, 0, bound)).toThrow(RangeError)
  })

  it('that are wrong open nothing', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put(bytes(100))
    const blob = await store.get(key)
    const before = engine.steps.length
    for (const bound of [...WRONG_TYPES.map(([, value]) => value), ...WRONG_NUMBERS]) {
      expect(() => blob?.slice(bound as number)).toThrow()
      expect(() => blob?.slice(0, bound as number)).toThrow()
    }
    expect(engine.steps.length).toBe(before)
  })
})

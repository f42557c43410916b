import { describe, expect, it } from 'vitest'
import { InvalidKeyError } from '../src/index.js'
import { algorithmOf, digestHexOf, digestOf, formatKey, isKey, parseKey, parseKeys, readDigest } from '../src/key.js'

const HEX = 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262'
const KEY = `blake3:${HEX}`

const NO_KEYS: Record<string, unknown> = {
  undefined: undefined,
  null: null,
  'a number': 7,
  NaN: Number.NaN,
  'a bigint': 7n,
  'a symbol': Symbol(KEY),
  'a function': () => KEY,
  'an array of one key': [KEY],
  'an object that prints as a key': { toString: () => KEY },
  'a String object': new String(KEY),
  'bytes of a digest': Buffer.from(HEX, 'hex'),
  'the empty string': '',
  'a digest alone': HEX,
  'an algorithm alone': 'blake3:',
  '63 digits': KEY.slice(0, -1),
  '65 digits': `${KEY}0`,
  'upper case digits': `blake3:${HEX.toUpperCase()}`,
  'an upper case algorithm': `BLAKE3:${HEX}`,
  'another separator': `blake3-${HEX}`,
  'two separators': `blake3::${HEX.slice(1)}`,
  'another algorithm': `md5:${HEX}`,
  'an algorithm that starts alike': `blake3x:${HEX}`,
  'a letter that is no digit': `blake3:g${HEX.slice(1)}`,
  'a leading space': ` ${KEY}`,
  'a trailing space': `${KEY} `,
  'a trailing line break': `${KEY}\n`,
  'a leading line break': `\n${KEY}`,
  'a NUL at the end': `${KEY}\0`,
  'a NUL inside': `blake3:${HEX.slice(0, 31)}\0${HEX.slice(32)}`,
  'a path out of the folder': `blake3:../../../../etc/passwd`,
  'a path of the right length': `blake3:${'../'.repeat(21)}a`,
  'full-width digits': `blake3:${'０'.repeat(64)}`,
  'a digit that folds to ASCII': `blake3:${HEX.slice(0, 63)}ſ`,
  'a huge string': 'a'.repeat(1_000_000)
}

describe('keys', () => {
  it('are written as algorithm and 64 lower-case digits, and read back the same', () => {
    for (const algorithm of ['blake3', 'sha256'] as const) {
      const key = formatKey(algorithm, Buffer.from(HEX, 'hex'))
      expect(key).toBe(`${algorithm}:${HEX}`)
      expect(parseKey(key, algorithm)).toBe(key)
      expect(algorithmOf(key)).toBe(algorithm)
      expect(digestHexOf(key)).toBe(HEX)
      expect(digestOf(key)).toEqual(Buffer.from(HEX, 'hex'))
    }
  })

  it.each(Object.entries(NO_KEYS))('are not: %s', (_, value) => {
    expect(isKey(value)).toBe(false)
    expect(() => parseKey(value)).toThrow(InvalidKeyError)
    expect(() => parseKey(value)).toThrow(
      expect.objectContaining({ code: 'ERR_BLOB_INVALID_KEY', reason: 'malformed' })
    )
  })

  it('of another algorithm than the one asked for are refused, saying which is meant', () => {
    expect(() => parseKey(KEY, 'sha256')).toThrow(
      expect.objectContaining({
        code: 'ERR_BLOB_INVALID_KEY',
        reason: 'algorithm',
        message: expect.stringMatching(/sha256/)
      })
    )
  })

  it('in a list are named by their place in it, from 0', () => {
    const wrong = { code: 'ERR_BLOB_INVALID_KEY', message: expect.stringMatching(/^keys\[2\]: /), index: 2 }
    expect(() => parseKeys([KEY, KEY, 'secret'], 'blake3')).toThrow(expect.objectContaining(wrong))
    const other = { ...wrong, reason: 'algorithm' }
    expect(() => parseKeys([KEY, KEY, `sha256:${HEX}`], 'blake3')).toThrow(expect.objectContaining(other))
    expect(parseKeys([KEY, KEY], 'blake3')).toEqual([KEY])
  })

  it('that are malformed are not repeated in the message', () => {
    try {
      parseKey('secret-password')
      expect.unreachable()
    } catch (error) {
      expect((error as Error).message).not.toContain('secret')
    }
  })

  it('cannot be made of a digest of another length', () => {
    for (const length of [0, 31, 33, 64])
      expect(() => formatKey('blake3', Buffer.alloc(length))).toThrow(InvalidKeyError)
  })

  it('cover exactly the bytes of a view', () => {
    const slab = Buffer.from(`ffff${HEX}ffff`, 'hex')
    expect(formatKey('blake3', slab.subarray(2, 34))).toBe(KEY)
  })

  it("give a digest that is nobody else's", () => {
    const key = parseKey(KEY)
    digestOf(key).fill(0)
    expect(digestOf(key).toString('hex')).toBe(HEX)
  })
})

describe('a digest that is read out of a written key', () => {
  const into = () => Buffer.alloc(40, 0xee)

  it('lies at the offset and nowhere else', () => {
    for (const algorithm of ['blake3', 'sha256'] as const) {
      const bytes = into()
      readDigest(`${algorithm}:${HEX}`, algorithm, bytes, 5)
      expect(bytes.toString('hex')).toBe(`${'ee'.repeat(5)}${HEX}eeeeee`)
    }
  })

  it.each(Object.entries(NO_KEYS))('is not there in: %s', (_, value) => {
    for (const algorithm of ['blake3', 'sha256'] as const) {
      expect(() => readDigest(value, algorithm, into(), 0)).toThrow(
        expect.objectContaining({ code: 'ERR_BLOB_INVALID_KEY', reason: 'malformed' })
      )
    }
  })

  it('is refused of another algorithm', () => {
    const wrong = { reason: 'algorithm', message: expect.stringContaining('sha256') }
    expect(() => readDigest(KEY, 'sha256', into(), 0)).toThrow(expect.objectContaining(wrong))
  })

  it('is refused for one wrong character at any place, whatever it is', () => {
    const bytes = into()
    const strange = [
      ...Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)),
      '\u0130',
      '\uff10',
      '\ud800'
    ]
    for (let at = 0; at < KEY.length; at++) {
      // A digit in place of another is another key.
      const right = at < KEY.indexOf(':') + 1 ? KEY.charAt(at) : '0123456789abcdef'
      for (const character of strange) {
        if (right.includes(character)) continue
        const value = KEY.slice(0, at) + character + KEY.slice(at + 1)
        expect(() => readDigest(value, 'blake3', bytes, 0), `${character} at ${at}`).toThrow(InvalidKeyError)
      }
    }
  })
})

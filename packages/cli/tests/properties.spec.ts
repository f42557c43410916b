/** The parsers over arbitrary input: a value or a typed error, never a crash; and what they promise of the value. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CommandError, EXIT, UsageError } from '../src/exit-codes.js'
import { bytes, duration, printable } from '../src/format.js'
import { inOrder } from '../src/in-order.js'
import { LiveFileError, parseLiveFile } from '../src/live-file.js'
import { parseRange, resolveRange } from '../src/range.js'
import { parseMilliseconds } from '../src/session.js'
import { parseStoreUrl } from '../src/store-url.js'
import { parseTableColumn } from '../src/table-name.js'

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.string({ unit: fc.constantFrom(...'0123456789-') })
)

/** The value, or `undefined` for a typed error; anything else is thrown and fails the property. */
function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof CommandError && error.message !== '') return undefined
    throw error
  }
}

const keys = fc
  .tuple(
    fc.constantFrom('blake3', 'sha256'),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 })
  )
  .map(([algorithm, digest]) => `${algorithm}:${digest}`)

describe('parseRange', () => {
  test('any text is a range or a usage error', () => {
    fc.assert(fc.property(anyText, text => void parsed(() => parseRange(text))))
  })

  test('a range selects the bytes that its two inclusive ends name', () => {
    const length = fc.nat({ max: 300 })
    fc.assert(
      fc.property(length, length, length, (first, more, size) => {
        const part = parsed(() => resolveRange(parseRange(`${first}-${first + more}`), size))
        if (first >= size) expect(part).toBeUndefined()
        else expect(part).toEqual({ start: first, end: Math.min(size, first + more + 1) })
      })
    )
  })

  test('an open range ends with the blob, and a suffix counts from its end', () => {
    fc.assert(
      fc.property(fc.nat({ max: 300 }), fc.integer({ min: 1, max: 300 }), (number, size) => {
        const open = parsed(() => resolveRange(parseRange(`${number}-`), size))
        expect(open).toEqual(number >= size ? undefined : { start: number, end: size })
        const suffix = parsed(() => resolveRange(parseRange(`-${number}`), size))
        expect(suffix).toEqual(number === 0 ? undefined : { start: Math.max(0, size - number), end: size })
      })
    )
  })
})

describe('parseStoreUrl', () => {
  test('any text is an address or a usage error, and neither repeats what follows the scheme', () => {
    const url = fc.oneof(
      anyText,
      anyText.map(rest => `sqlite:${rest}`),
      anyText.map(rest => `mem:${rest}`)
    )
    fc.assert(fc.property(url, text => void parsed(() => parseStoreUrl(text))))
  })

  test('a folder is taken as it is written', () => {
    const name = fc.stringMatching(/^[A-Za-z0-9._ -]{1,20}$/)
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), names => {
        const folder = names.join('/')
        expect(parseStoreUrl(`sqlite:${folder}`)).toMatchObject({ scheme: 'sqlite', folder })
      })
    )
  })

  test('a password in a connection string never shows: not in the address, not in what a refusal says', () => {
    const secret = 'hunter2'
    const given = fc.constantFrom(
      `postgres://me:${secret}@host/db`,
      `postgresql://me:${secret}@host:5433/db?schema=media&root=files`,
      `postgres://host/db?user=me&password=${secret}&large=pglo`,
      `postgres://me:${secret}@host:port/db`,
      `postgres:me:${secret}@host/db`,
      `postgres://me:${secret}@host/db?large=${secret}`,
      `postgres://me:${secret}@host/db?large=pglo&root=${secret}`,
      `mysql://me:${secret}@host/db`
    )
    fc.assert(
      fc.property(given, text => {
        try {
          expect(parseStoreUrl(text).url).not.toContain(secret)
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError)
          expect((error as Error).message).not.toContain(secret)
        }
      })
    )
  })

  test('a postgres URL keeps the options of the connection, and gives ours to the engines', () => {
    expect(parseStoreUrl('postgres://me@host/db?sslmode=require&schema=media&large=pglo')).toEqual({
      scheme: 'postgres',
      url: 'postgres://host/db?schema=media',
      connection: 'postgres://me@host/db?sslmode=require',
      schema: 'media',
      large: { schema: 'media_pglo' }
    })
    expect(parseStoreUrl('postgres://host/db')).toMatchObject({ schema: 'alkblobs', large: undefined })
    expect(parseStoreUrl('postgres://host/db?root=./files')).toMatchObject({ large: { root: './files' } })
  })
})

describe('parseTableColumn', () => {
  const bare = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_ -]{0,12}$/)
  const quote = (name: string) => `"${name.replaceAll('"', '""')}"`
  const name = fc.string({ minLength: 1, maxLength: 12 })

  test('any text is a column or a usage error', () => {
    fc.assert(fc.property(anyText, text => void parsed(() => parseTableColumn(text))))
  })

  test('parts are taken as they are written, and the column without its quotes', () => {
    fc.assert(
      fc.property(bare, bare, name, (schema, table, column) => {
        expect(parseTableColumn(`${table}.${quote(column)}`)).toEqual({ table, column })
        const qualified = `${schema}.${quote(table)}`
        expect(parseTableColumn(`${qualified}.${table}`)).toEqual({ table: qualified, column: table })
      })
    )
  })

  test('one part, four parts and open quotes are refused', () => {
    for (const text of ['', 'column', '.column', 'table.', 'a.b.c.d', '"a.b', 'a..b', '"a"b.c'])
      expect(() => parseTableColumn(text), text).toThrow(UsageError)
  })
})

describe('parseLiveFile', () => {
  const readAll = async (chunks: Iterable<Uint8Array>) => {
    const found: string[] = []
    for await (const key of parseLiveFile(chunks)) found.push(key)
    return found
  }
  /** The text in pieces cut at arbitrary bytes, so that lines and characters come apart. */
  const inPieces = (text: string | Uint8Array, cuts: readonly number[]) => {
    const whole = Buffer.from(text)
    const places = [...new Set(cuts.map(cut => cut % (whole.length + 1)))].sort((one, other) => one - other)
    return [0, ...places].map((start, index) => whole.subarray(start, places[index] ?? whole.length))
  }
  const cuts = fc.array(fc.nat(), { maxLength: 8 })

  test('any bytes are keys or an error with a line number', async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 500 }),
      anyText.map(text => Buffer.from(text))
    )
    await fc.assert(
      fc.asyncProperty(content, cuts, async (text, places) => {
        const outcome = await readAll(inPieces(text, places)).catch(error => error)
        if (Array.isArray(outcome)) return
        expect(outcome).toBeInstanceOf(LiveFileError)
        expect(outcome.line).toBeGreaterThan(0)
      })
    )
  })

  const blank = fc.constantFrom('', '   ', '\t', '# a comment', '  # ö', '\r')
  const spaced = keys.chain(key => fc.constantFrom(key, ` ${key}`, `${key}\r`, `${key}  `))

  test('every key comes out in order, whatever lies between and however the bytes are cut', async () => {
    const lines = fc.array(fc.oneof(spaced, blank), { maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(lines, cuts, fc.boolean(), async (all, places, endsWithNewline) => {
        const text = all.join('\n') + (endsWithNewline ? '\n' : '')
        const expected = all.map(line => line.trim()).filter(line => line !== '' && !line.startsWith('#'))
        expect(await readAll(inPieces(text, places))).toEqual(expected)
      })
    )
  })

  test('a damaged key ends the reading with the number of its line', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(spaced, blank), { maxLength: 10 }),
        keys,
        cuts,
        async (before, key, places) => {
          const text = [...before, key.slice(0, -1), key].join('\n')
          await expect(readAll(inPieces(text, places))).rejects.toMatchObject({
            line: before.length + 1,
            exitCode: EXIT.usage
          })
        }
      )
    )
  })
})

test('a time in milliseconds is a whole number or a usage error', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, fc.nat().map(String)), text => {
      const value = parsed(() => parseMilliseconds(text))
      if (value !== undefined) expect(Number.isSafeInteger(value) && value >= 0).toBe(true)
    })
  )
})

test('lengths and times are short and never undefined', () => {
  fc.assert(
    fc.property(fc.nat({ max: Number.MAX_SAFE_INTEGER }), number => {
      expect(bytes(number)).toMatch(/^[\d.]+ (B|kB|MB|GB|TB|PB)$/)
      expect(bytes(number).length).toBeLessThan(10)
      expect(duration(number)).toMatch(/^[\d.]+ (ms|s|min|h|d)( \d+ (s|min|h))?$/)
    })
  )
})

test('a printable name has no control characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), name => {
      expect(printable(name)).not.toMatch(/\p{Cc}/u)
    })
  )
})

test('work in order gives every result in order and never runs more than the limit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 4 }), { maxLength: 30 }),
      fc.integer({ min: 1, max: 5 }),
      async (delays, limit) => {
        let running = 0
        let most = 0
        const work = async (turns: number) => {
          most = Math.max(most, ++running)
          for (let turn = 0; turn < turns; turn++) await Promise.resolve()
          running -= 1
          return turns
        }
        const results: number[] = []
        for await (const result of inOrder(delays, limit, work)) results.push(result)
        expect(results).toEqual(delays)
        expect(most).toBeLessThanOrEqual(limit)
      }
    )
  )
})

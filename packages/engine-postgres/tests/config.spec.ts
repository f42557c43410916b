import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { postgres } from '../src/index.js'

describe('a config', () => {
  test.each([
    [undefined],
    [null],
    [7],
    [{ url: 'mysql://localhost/db' }],
    [{ url: 'not a url' }],
    [{ url: 'postgres://localhost/db', schema: '' }],
    [{ url: 'postgres://localhost/db', schema: 7 }],
    [{ url: 'postgres://localhost/db', schema: 'pg_pool' }],
    [{ url: 'postgres://localhost/db', schema: 'information_schema' }],
    [{ url: 'postgres://localhost/db', schema: 'a\0b' }],
    [{ url: 'postgres://localhost/db', schema: 'ü'.repeat(32) }],
    [{ url: 'postgres://localhost/db', poolMax: 1 }],
    [{ url: 'postgres://localhost/db', poolMax: 2.5 }],
    [{ url: 'postgres://localhost/db', poolMax: '4' }],
    [{ url: 'postgres://localhost/db?sslmode=toString' }],
    [{ host: 'localhost', ssl: 'constructor' }],
    [{ host: 'localhost', port: 0 }],
    [{ host: 'localhost', user: 7 }]
  ])('of %j is refused with a typed error', config => {
    expect(() => postgres(config as never)).toThrowError(expect.objectContaining({ code: 'ERR_BLOB_INVALID_ARGUMENT' }))
  })

  test('that is refused is not repeated: a password may be in it', () => {
    for (const url of ['postgres://me:hunter2@host:port/db', 'https://me:hunter2@host/db']) {
      try {
        postgres({ url })
        expect.unreachable()
      } catch (error) {
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hunter2')
      }
    }
  })

  test('makes a definition that has its name, shows no secret, and opens nothing', () => {
    const definition = postgres({ url: 'postgres://me:hunter2@nowhere.invalid/db' })
    expect(definition.name).toBe('postgres')
    expect(inspect(definition, { depth: 9, showHidden: true })).not.toContain('hunter2')
  })
})

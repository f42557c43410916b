import { expect, test } from 'vitest'
import { sqlite } from '../src/index.js'

test.each([
  [undefined],
  [{}],
  [{ file: '' }],
  [{ file: 7 }],
  [{ file: 'a\0b' }],
  [{ file: ':memory:' }],
  [{ file: 'file:pool.db?mode=memory' }],
  [{ file: 'pool.db ' }],
  [{ file: 'pool.db', durability: 'process' }]
])('a config of %j is refused with a typed error', config => {
  expect(() => sqlite(config as never)).toThrowError(expect.objectContaining({ code: 'ERR_BLOB_INVALID_ARGUMENT' }))
})

test('a definition has its name and opens nothing', () => {
  expect(sqlite({ file: '/nowhere/at/all/pool.db' }).name).toBe('sqlite')
})

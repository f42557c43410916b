/** Sources that fail where nobody listens yet. */
import { expect, it } from 'vitest'
import { temporaryFolder } from '../bad-input/stores.js'
import { said } from './children.js'

it('a file that is not there fails its put, and never the process', async () => {
  const outcomes = await said<string>('failing-source.mjs', { folder: temporaryFolder() })
  expect(outcomes).toEqual(['ENOENT', 'ENOENT', 'ERR_BLOB_INVALID_ARGUMENT', 'mine', 'ERR_BLOB_STORE_CLOSED'])
})

import { describe, expect, it } from 'vitest'
import * as core from '../src/index.js'
import { bytes, opened, rejection } from './opened.js'

const KEY = `blake3:${'a'.repeat(64)}` as core.BlobKey
const OTHER = `blake3:${'b'.repeat(64)}` as core.BlobKey

/** Codes are what programs test: changing one is a breaking change, which this table makes visible. */
const EVERY: [core.BlobError, string, string][] = [
  [new core.InvalidArgumentError('x', 'a number'), 'InvalidArgumentError', 'ERR_BLOB_INVALID_ARGUMENT'],
  [new core.InvalidKeyError('malformed'), 'InvalidKeyError', 'ERR_BLOB_INVALID_KEY'],
  [new core.InvalidContentError('x'), 'InvalidContentError', 'ERR_BLOB_INVALID_CONTENT'],
  [new core.BlobTooLargeError(1, 'x'), 'BlobTooLargeError', 'ERR_BLOB_TOO_LARGE'],
  [new core.LengthMismatchError(1, 2), 'LengthMismatchError', 'ERR_BLOB_LENGTH_MISMATCH'],
  [new core.KeyMismatchError(KEY, OTHER), 'KeyMismatchError', 'ERR_BLOB_KEY_MISMATCH'],
  [new core.PutError('ERR_BLOB_PIN_REQUIRED', 'x'), 'PutError', 'ERR_BLOB_PIN_REQUIRED'],
  [new core.PutError('ERR_BLOB_TOO_MANY_PUTS', 'x'), 'PutError', 'ERR_BLOB_TOO_MANY_PUTS'],
  [new core.PutError('ERR_BLOB_STAGE_LOST', 'x'), 'PutError', 'ERR_BLOB_STAGE_LOST'],
  [new core.CorruptBlobError(KEY, 'x'), 'CorruptBlobError', 'ERR_BLOB_CORRUPT'],
  [new core.BlobRemovedError(KEY), 'BlobRemovedError', 'ERR_BLOB_REMOVED'],
  [new core.GcRefusedError(KEY, 'pinned'), 'GcRefusedError', 'ERR_BLOB_GC_REFUSED'],
  [new core.StoreClosedError(), 'StoreClosedError', 'ERR_BLOB_STORE_CLOSED'],
  [new core.PoolRefusedError('media', 'x'), 'PoolRefusedError', 'ERR_BLOB_POOL_REFUSED'],
  [new core.EngineError('e', 'put', 'full', 'x'), 'EngineError', 'ERR_BLOB_ENGINE']
]

describe('errors', () => {
  it.each(EVERY)('%s is a BlobError named %s with the code %s', (error, name, code) => {
    expect(error).toBeInstanceOf(core.BlobError)
    expect(error).toBeInstanceOf(Error)
    expect([error.name, error.code]).toEqual([name, code])
    expect(error.stack).toContain(name)
  })

  it('are no more classes than anybody can know', () => {
    const classes = Object.values(core).filter(value => typeof value === 'function' && value.prototype instanceof Error)
    expect(classes.length).toBeLessThanOrEqual(15)
  })

  it('carry fields, not text: key, lengths, reason, cause', () => {
    const cause = new Error('x')
    expect(new core.CorruptBlobError(KEY, 'x', cause)).toMatchObject({ key: KEY, cause })
    expect(new core.LengthMismatchError(5, 3)).toMatchObject({ declared: 5, seen: 3 })
    expect(new core.KeyMismatchError(KEY, OTHER)).toMatchObject({ expected: KEY, actual: OTHER, key: OTHER })
    expect(new core.GcRefusedError(KEY, 'live')).toMatchObject({ reason: 'live', key: KEY })
    expect('cause' in new core.CorruptBlobError(KEY, 'x')).toBe(false)
    expect(new core.EngineError('e', 'o', 'full', 'x').key).toBeUndefined()
  })

  it('never hold content', async () => {
    const secret = 'hunter2-is-the-password'
    const { store, engine } = await opened()
    engine.every('publish', async () => {
      throw new Error('driver')
    })
    const stream = async function* () {
      yield Buffer.from(secret)
      yield secret as never
    }
    const errors = [
      await rejection(store.put(secret)),
      await rejection(store.put(secret, { length: 3 })),
      await rejection(store.put(secret, { expect: KEY })),
      await rejection(store.put(secret, { maxLength: 3 })),
      await rejection(store.put(stream())),
      await rejection(store.put([secret] as never)),
      await rejection(store.put({ secret } as never)),
      await rejection(store.get(secret)),
      await rejection(store.put(bytes(3), { length: secret as never })),
      await rejection(store.put(bytes(3), { expect: secret })),
      await rejection(core.openStore({ kv: secret as never })),
      await rejection(core.openStore({ kv: engine.kv, derivation: secret as never })),
      await rejection(core.openStore({ kv: engine.kv, instanceId: `${secret}!` }))
    ]
    for (const error of errors) {
      expect(error).toBeInstanceOf(core.BlobError)
      expect(`${error.message} ${error.stack?.split('\n')[0]}`).not.toContain('hunter2')
    }
  })
})

import { expect, test, vi } from 'vitest'
import { checkConfig } from '../src/config.js'

vi.mock('node:os', async original => ({
  ...(await original<typeof import('node:os')>()),
  userInfo() {
    throw new Error('ENOENT: no such file or directory, uv_os_get_passwd')
  }
}))

// As in a container that runs under a number of its own.
test('a process whose user has no name has to name one', () => {
  vi.stubEnv('PGUSER', undefined)
  const refused = expect.objectContaining({ code: 'ERR_BLOB_INVALID_ARGUMENT', message: expect.stringMatching(/user/) })
  expect(() => checkConfig({ host: 'localhost' })).toThrow(refused)
  expect(checkConfig({ host: 'localhost', user: 'blobs' })).toMatchObject({ user: 'blobs', database: 'blobs' })
  vi.unstubAllEnvs()
})

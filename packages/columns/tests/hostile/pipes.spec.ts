/** Pipes in the place of the pool's files: found to be no files, by a process that must not stop at any of them. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../bad-input/stores.js'
import { said } from './children.js'
import { filesBelow } from './pools.js'

/** A pool where the workers look for theirs, with one large body. */
async function poolWithBody(length: number) {
  const folder = temporaryFolder()
  const root = join(folder, 'bodies')
  const store = await openStore({
    kv: sqlite({ file: join(folder, 'pool.db') }),
    large: local({ root }),
    threshold: 10,
    windowDelayMs: 0
  })
  const { key } = await store.put(Buffer.alloc(length, 7))
  await store.close()
  return { folder, root, key }
}

function putPipe(path: string): void {
  rmSync(path)
  execFileSync('mkfifo', [path])
}

const DAMAGED = 'ERR_BLOB_CORRUPT'

// Windows has no pipes in the file system.
describe.runIf(process.platform !== 'win32')('a pipe', () => {
  // The shorter is read at once, the longer in windows.
  it.each([1_000, 300_000])(
    'in the place of a body of %i bytes is a damaged entry, and a put heals it',
    async length => {
      const { folder, root, key } = await poolWithBody(length)
      putPipe(filesBelow(root).find(file => file.includes(`.${key.slice(7)}.`)) ?? '')
      const heard = Object.assign({}, ...(await said<object>('pipe.mjs', { folder, key, length })))
      expect(heard).toEqual({
        open: 'done',
        get: DAMAGED,
        range: DAMAGED,
        verify: [key],
        put: 'done',
        again: length,
        close: 'done'
      })
    }
  )

  it('in the place of the claim is an error at open', async () => {
    const { folder, root, key } = await poolWithBody(1_000)
    putPipe(join(root, 'alkblobs.json'))
    expect(await said('pipe.mjs', { folder, key, length: 1_000 })).toEqual([{ open: 'ERR_BLOB_ENGINE' }])
  })

  it('in the place of the database is refused at open', async () => {
    const { folder, key } = await poolWithBody(1_000)
    putPipe(join(folder, 'pool.db'))
    const [{ open } = {}] = await said<{ open?: string }>('pipe.mjs', { folder, key, length: 1_000 })
    expect(open).toMatch(/^ERR_BLOB_(ENGINE|POOL_REFUSED)$/)
  })
})

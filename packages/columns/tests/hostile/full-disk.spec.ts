/** A disk with no room left: nothing acknowledged is lost, and the way out of it is what one would try, removal. */
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BlobKey, PutReceipt, Store } from '@alkblobs/core'
import { describe, expect, it } from 'vitest'
import { atEnd, failureOf, temporaryFolder } from '../bad-input/stores.js'
import { hostilePool } from './pools.js'

const isRoot = process.getuid?.() === 0
const THRESHOLD = 100_000
const FULL = { code: 'ERR_BLOB_ENGINE', kind: 'full', transient: false }

type Kept = Map<BlobKey, { readonly content: Buffer; readonly receipt: PutReceipt }>

/** Puts contents of one length until one fails for want of room. */
async function fill(store: Store, kept: Kept, length: number, seed: number): Promise<void> {
  for (let at = 0; at < 1_000; at += 1) {
    const content = Buffer.alloc(length, `${seed} ${at} `)
    const error = await failureOf(async () => {
      const receipt = await store.put(content)
      kept.set(receipt.key, { content, receipt })
    })
    if (error === undefined) continue
    expect(error).toMatchObject(FULL)
    return
  }
  throw new Error('the disk did not become full')
}

async function expectWhole(store: Store, kept: Kept): Promise<void> {
  for (const [key, { content }] of kept) {
    const read = await (await store.get(key))?.bytes()
    expect(Buffer.compare(read ?? Buffer.alloc(0), content)).toBe(0)
  }
  const { entries, ...found } = await store.verify()
  expect({ entries, ...found }).toMatchObject({ entries: kept.size, corrupt: [], dangling: [] })
}

/** A folder on a file system of so many MiB, with a file that takes some of it and can be removed. */
function smallDisk(mebibytes: number, ballastMebibytes: number) {
  const folder = temporaryFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0700`, 'tmpfs', folder])
  atEnd(() => execFileSync('umount', ['--lazy', folder]))
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(ballastMebibytes << 20))
  return { folder, makeRoom: () => rmSync(ballast) }
}

describe.runIf(isRoot)('a full disk', () => {
  it('keeps everything acknowledged, and is emptied through the same store once its log can be', async () => {
    const { folder, makeRoom } = smallDisk(10, 3)
    const store = await hostilePool(folder).open({ threshold: THRESHOLD })
    store.protect({ name: 'nothing', live: () => [] })
    const kept: Kept = new Map()
    for (const [seed, length] of [300_000, 60_000, 2_000].entries()) await fill(store, kept, length, seed)
    await expectWhole(store, kept)
    // Whatever a removal answers now, it answers in time and with what is the matter.
    for (const call of [() => store.sweep(), () => store.maintain()]) {
      const error = await failureOf(call)
      if (error !== undefined) expect(error).toMatchObject(FULL)
    }
    await expectWhole(store, kept)

    makeRoom()
    const [one, two] = [...kept.values()].map(({ receipt }) => receipt) as [PutReceipt, PutReceipt]
    await one.release()
    await two.release()
    expect(await store.delete(one.key)).toBe(true)
    kept.delete(one.key)
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
    expect(await store.sweep()).toMatchObject({ deleted: 1, failed: [] })
    kept.delete(two.key)
    await expectWhole(store, kept)
    expect(await store.usage()).toMatchObject({ stages: 0, trash: 0 })
    expect((await store.put(Buffer.alloc(300_000, 'again'))).created).toBe(true)
  })

  it('is emptied by removals alone where the catalog has room of its own to move its log into', async () => {
    const { folder } = smallDisk(10, 0)
    const pool = hostilePool(folder)
    const first = await pool.open({ threshold: THRESHOLD })
    const early: PutReceipt[] = []
    for (let at = 0; at < 30; at += 1) early.push(await first.put(Buffer.alloc(60_000, `early ${at} `)))
    for (const receipt of early) {
      await receipt.release()
      expect(await first.delete(receipt.key)).toBe(true)
    }
    // Closing moves the log into the file, whose pages are free by now.
    await first.close()

    const store = await pool.open({ threshold: THRESHOLD })
    const kept: Kept = new Map()
    await fill(store, kept, 300_000, 1)
    await fill(store, kept, 120_000, 2)
    await expectWhole(store, kept)
    for (const [key, { receipt }] of [...kept].slice(0, 3)) {
      await receipt.release()
      expect(await store.delete(key)).toBe(true)
      kept.delete(key)
    }
    expect(await store.maintain()).toMatchObject({ failed: [] })
    const again = await store.put(Buffer.alloc(300_000, 'again'))
    expect(again.created).toBe(true)
    await again.release()
    kept.set(again.key, { content: Buffer.alloc(300_000, 'again'), receipt: again })
    await expectWhole(store, kept)
    await store.close()
    await expectWhole(await pool.open({ threshold: THRESHOLD }), kept)
  })
})

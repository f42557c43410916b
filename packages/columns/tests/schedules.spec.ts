/**
 * Schedules that lost bytes in earlier states of the code, each held at the step that mattered. They cross two stores, or need
 * rows aged behind a store's back, so they are written out here instead of being rows.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BlobKey, openStore, type Store } from '@alkblobs/core'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { databasePart } from '../src/oracles/database.js'

const ABSENT = `blake3:${'0'.repeat(64)}`

function temporaryFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'alkblobs-schedules-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

function poolIn(folder: string) {
  const file = join(folder, 'kv.db')
  const root = join(folder, 'large')
  const open = async (large: EngineDefinition = local({ root })): Promise<Store> => {
    const tuned = { threshold: 10, windowDelayMs: 0, trashDelayMs: 0 }
    const store = await openStore({ kv: sqlite({ file }), large, ...tuned })
    onTestFinished(() => store.close())
    return store
  }
  const expirePins = () => databasePart(file).age(24 * 60 * 60 * 1000)
  return { root, open, expirePins }
}

/** Sources that answer from before `meanwhile` ran: the question was asked, the application goes on, the answer arrives. */
function slowSource(references: ReadonlySet<string>, meanwhile: () => Promise<void>) {
  return {
    name: 'references',
    async isLive(keys: readonly BlobKey[]) {
      const answer = keys.filter(key => references.has(key))
      await meanwhile()
      return answer
    }
  }
}

// A holder that was stopped for longer than its pin lives, and came back before anybody reaped the row.
it('a pin that is revived while its key is being deleted protects it as a new one would', async () => {
  const pool = poolIn(temporaryFolder())
  const [holder, collector] = [await pool.open(), await pool.open()]
  const receipt = await holder.put('precious')
  const references = new Set<string>()
  await pool.expirePins()
  let asked = 0
  const whileAsked = async () => {
    asked += 1
    // Any removal renews what its store holds before it begins, which revives the row; it also sends releases.
    await holder.delete(ABSENT)
    references.add(receipt.key)
    await receipt.release()
    await holder.delete(ABSENT)
  }
  collector.protect(slowSource(references, whileAsked))
  await expect(collector.delete(receipt.key)).rejects.toMatchObject({ reason: 'pinned' })
  expect(asked).toBe(1)
  expect(await holder.has(receipt.key)).toBe(true)
})

// The same holder, come back after a sweep has reaped the row: it is told, and nobody revives anything.
it('a pin whose row was reaped is lost and says so', async () => {
  const pool = poolIn(temporaryFolder())
  const [holder, collector] = [await pool.open(), await pool.open()]
  const { pin } = await holder.put('precious')
  await pool.expirePins()
  collector.protect({ name: 'nothing', live: () => [] })
  expect(await collector.sweep()).toMatchObject({ pinsReaped: 1, candidatesStaged: 1 })
  await holder.delete(ABSENT)
  expect(pin).toMatchObject({ held: false })
  expect(pin?.signal.aborted).toBe(true)
  expect(await collector.sweep()).toMatchObject({ deleted: 1 })
})

it('a body that is sealed and published while orphans are looked for is no orphan', async () => {
  const pool = poolIn(temporaryFolder())
  let afterScan: (() => Promise<void>) | undefined
  const inner = local({ root: pool.root })
  const slow: EngineDefinition = {
    name: inner.name,
    async open(context) {
      const engine = await inner.open(context)
      const { bodies } = engine
      if (bodies === undefined) return engine
      const held = Object.create(bodies) as typeof bodies
      held.scan = async (...args) => {
        const page = await bodies.scan(...args)
        await afterScan?.()
        return page
      }
      return Object.assign(Object.create(engine), { bodies: held })
    }
  }
  const store = await pool.open(slow)
  const content = Buffer.alloc(3_000_000, 7)
  const writer = store.writer()
  await writer.write(content)
  afterScan = async () => {
    afterScan = undefined
    await writer.commit()
  }
  expect(await store.maintain({ scan: true })).toMatchObject({ orphans: 0, dropped: 0 })
  expect(afterScan).toBeUndefined()
  const { key } = await writer.commit()
  expect(Buffer.compare((await (await store.get(key))?.bytes()) ?? Buffer.alloc(0), content)).toBe(0)
})

it('a folder that is not mounted is not taken for a new one, at open or by a store that was open before', async () => {
  const pool = poolIn(temporaryFolder())
  const store = await pool.open()
  const { key } = await store.put(Buffer.alloc(100_000, 1))
  await store.close()
  const openBefore = await pool.open()
  const elsewhere = `${pool.root}-elsewhere`
  renameSync(pool.root, elsewhere)
  mkdirSync(pool.root)
  await expect(pool.open()).rejects.toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED', reason: 'media' })
  await expect((await openBefore.get(key))?.bytes()).rejects.toMatchObject({
    code: 'ERR_BLOB_ENGINE',
    kind: 'transient'
  })
  await expect(openBefore.put(Buffer.alloc(100_000, 2))).rejects.toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED' })
  await expect(openBefore.verify({ repair: true })).rejects.toMatchObject({
    name: expect.stringMatching(/Engine|PoolRefused/)
  })
  expect(existsSync(join(pool.root, 'alkblobs.json'))).toBe(false)
  renameSync(pool.root, `${pool.root}-mount-point`)
  renameSync(elsewhere, pool.root)
  expect((await (await openBefore.get(key))?.bytes())?.length).toBe(100_000)
})

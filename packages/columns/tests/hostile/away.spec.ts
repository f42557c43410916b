/** The folder of the large tier goes away and comes back in the worst moments: nothing that lies in it is called lost. */
import { renameSync } from 'node:fs'
import { tapped } from '@alkblobs/conformance'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { expect, it } from 'vitest'
import { failureOf } from '../bad-input/stores.js'
import { type HostilePool, hostilePool } from './pools.js'

const content = Buffer.alloc(1_000, 3)

/** The folder is away while a body is read, and back as soon as the read has failed. */
function flickering({ root }: HostilePool) {
  let failed = 0
  let isOn = false
  const away = `${root}-away`
  const wrapLarge = (definition: EngineDefinition) =>
    tapped(definition, {
      bodies: inner => ({
        async *read(...args: Parameters<typeof inner.read>) {
          if (!isOn) return yield* inner.read(...args)
          renameSync(root, away)
          try {
            yield* inner.read(...args)
          } catch (error) {
            failed += 1
            throw error
          } finally {
            renameSync(away, root)
          }
        }
      })
    })
  return { wrapLarge, turnOn: () => (isOn = true), failed: () => failed }
}

// A store that has not written knows the claim from its opening; one that was opened before the pool existed knows none at all.
it.each(['the pool existed', 'there was a pool'])(
  'repair ends no record of a body it missed for a moment (opened before: %s)',
  async when => {
    const pool = hostilePool()
    const maker = await pool.open()
    const { wrapLarge, turnOn, failed } = flickering(pool)
    if (when === 'there was a pool') await maker.put('made')
    const store = await pool.open({ wrapLarge })
    const { key } = await maker.put(content)
    await maker.close()
    turnOn()
    const report = await store.verify({ repair: true }).catch((error: { code: string; transient: boolean }) => error)
    expect(failed()).toBeGreaterThan(0)
    if ('code' in report) expect(report).toMatchObject({ code: 'ERR_BLOB_ENGINE', transient: true })
    else expect(report).toMatchObject({ repaired: [] })
    expect(await store.has(key)).toBe(true)
  }
)

it('a folder that is away is a passing failure to a store that never wrote, not a pool full of damage', async () => {
  const pool = hostilePool()
  const virgin = await pool.open()
  const maker = await pool.open()
  const { key } = await maker.put(content)
  await maker.close()
  const late = await pool.open()
  renameSync(pool.root, `${pool.root}-away`)
  for (const store of [virgin, late]) {
    const transient = { code: 'ERR_BLOB_ENGINE', transient: true }
    expect(await failureOf(async () => (await store.get(key))?.bytes())).toMatchObject(transient)
    expect(await failureOf(() => store.verify())).toMatchObject(transient)
    expect(await failureOf(() => store.verify({ repair: true }))).toMatchObject({
      code: expect.stringMatching(/^ERR_BLOB_(ENGINE|POOL_REFUSED)$/)
    })
  }
  renameSync(`${pool.root}-away`, pool.root)
  for (const store of [virgin, late]) {
    expect((await (await store.get(key))?.bytes())?.length).toBe(content.length)
    expect(await store.verify()).toMatchObject({ clean: true, entries: 1 })
  }
})

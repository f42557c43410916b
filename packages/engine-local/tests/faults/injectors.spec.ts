// What the system may refuse to a folder: no space, no descriptors, a medium that is away. Named, and nothing is left of it.
import { existsSync } from 'node:fs'
import { mkdir, rename, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openStore, type Store } from '@alkblobs/core'
import { createMedium, mem } from '@alkblobs/engine-mem'
import {
  away,
  contestedSurfaces,
  type Fault,
  FaultPlan,
  faulty,
  fullDisk,
  outOfDescriptors,
  partsOf,
  smallDisk,
  systemError
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { describe, expect, it } from 'vitest'
import { local } from '../../src/index.js'
import { atEnd, filesIn, temporaryFolder } from '../support.js'

const context = { algorithm: 'sha256', lockTimeoutMs: 1_000, connectTimeoutMs: 1_000 } as const
const LARGE = 300_000

async function storeIn(root: string, plan: FaultPlan): Promise<Store> {
  const store = await openStore({
    kv: mem({ medium: createMedium() }),
    large: faulty(local({ root }), plan),
    threshold: 10,
    windowDelayMs: 0,
    operationTimeoutMs: 300
  })
  atEnd(() => store.close())
  return store
}

const bytes = (fill: string) => Buffer.alloc(LARGE, fill)

it('offers what the list of surfaces says of it', async () => {
  const engine = await local({ root: await temporaryFolder() }).open(context)
  expect(partsOf(engine)).toEqual(contestedSurfaces.engines.local?.parts)
  expect([fullDisk('files'), outOfDescriptors('files'), away('files')].map(engine.classify)).toEqual([
    'full',
    'exhausted',
    'transient'
  ])
  await engine.close()
})

describe('a body that fails on its way', () => {
  it.each<[string, Fault, object]>([
    [
      'out of descriptors',
      { at: 'bodies.create', how: { kind: 'fail', error: () => systemError('EMFILE', 'open') } },
      { kind: 'exhausted' }
    ],
    [
      'in the middle of a chunk',
      { at: 'bodies.writer.write', how: { kind: 'cut', atByte: 100_000, error: () => systemError('ENOSPC') } },
      { kind: 'full' }
    ],
    [
      'at its seal, before it',
      { at: 'bodies.writer.seal', how: { kind: 'fail', error: () => systemError('EIO') } },
      { kind: 'unknown' }
    ],
    [
      'at its seal, after it',
      { at: 'bodies.writer.seal', when: 'after', how: { kind: 'fail', error: () => systemError('ENODEV') } },
      { kind: 'transient' }
    ],
    ['by silence', { at: 'bodies.writer.write', how: { kind: 'hang' } }, { kind: 'outcome-unknown' }]
  ])('%s is named, leaves nothing, and the next one is whole', async (_, fault, error) => {
    const root = await temporaryFolder()
    const plan = new FaultPlan()
    const store = await storeIn(root, plan)
    const armed = plan.arm(fault)
    await expect(store.put(bytes('a'))).rejects.toMatchObject({ code: 'ERR_BLOB_ENGINE', engine: 'local', ...error })
    armed.finish()
    await store.maintain()
    expect((await filesIn(root)).filter(name => !/^(alkblobs|lock\.)/.test(name))).toEqual([])
    const { key } = await store.put(bytes('a'))
    expect(bytes('a').equals((await (await store.get(key))?.bytes()) ?? Buffer.alloc(0))).toBe(true)
  })

  it('and is slow is whole', async () => {
    const plan = new FaultPlan()
    const store = await storeIn(await temporaryFolder(), plan)
    const armed = plan.arm({ at: 'bodies.writer.seal', how: { kind: 'delay', ms: 50 } })
    const { key } = await store.put(bytes('a'))
    armed.finish()
    expect((await (await store.get(key))?.bytes())?.length).toBe(LARGE)
  })
})

describe('a read that is cut', () => {
  it.each([{ short: true } as const, { error: () => systemError('EIO', 'read') }])(
    'never ends as if it were complete (%o)',
    async how => {
      const plan = new FaultPlan()
      const store = await storeIn(await temporaryFolder(), plan)
      const { key } = await store.put(bytes('a'))
      for (const read of [
        async () => await (await store.get(key))?.bytes(),
        async () => {
          for await (const _ of (await store.get(key)) ?? []);
        }
      ]) {
        const armed = plan.arm({
          at: 'bodies.read',
          lasting: 'for good',
          how: { kind: 'cut', atByte: LARGE - 1, ...how }
        })
        const code = 'short' in how ? 'ERR_BLOB_CORRUPT' : 'ERR_BLOB_ENGINE'
        await expect(read()).rejects.toMatchObject({ code })
        armed.finish()
      }
      expect((await (await store.get(key))?.bytes())?.length).toBe(LARGE)
    }
  )
})

describe('a body that cannot be unlinked', () => {
  it('is told of, stays in trash, and goes when it can', async () => {
    const root = join(await temporaryFolder(), 'large')
    const medium = createMedium()
    const { trash } = medium as unknown as { readonly trash: Map<string, { droppableAt: number }> }
    const store = await openStore({
      kv: mem({ medium }),
      large: local({ root }),
      threshold: 10,
      windowDelayMs: 0,
      trashDelayMs: 0
    })
    atEnd(() => store.close())
    store.protect({ name: 'nobody', live: () => [] })
    const receipt = await store.put(bytes('a'))
    const { key } = receipt
    await receipt.release()
    const [name] = (await filesIn(root)).filter(each => each.includes(key.slice(7)))
    const path = join(root, name as string)
    // A folder in its place: nobody may unlink one, whoever he is.
    await rename(path, `${root}-aside`)
    await mkdir(path)
    const { deleted, failed } = await store.sweep()
    expect(deleted).toBe(1)
    expect(failed).toMatchObject([{ key }])
    expect(trash.size).toBe(1)
    await rmdir(path)
    await rename(`${root}-aside`, path)
    for (const row of trash.values()) row.droppableAt = 0
    await store.maintain()
    expect(trash.size).toBe(0)
    expect(existsSync(path)).toBe(false)
  })
})

const disk = smallDisk(2)
describe.skipIf('unavailable' in disk)(`a small disk${'unavailable' in disk ? ` (${disk.unavailable})` : ''}`, () => {
  it('that is full keeps what it has, and takes more when there is room', async () => {
    if ('unavailable' in disk) return
    atEnd(async () => disk.release())
    const root = join(disk.folder, 'large')
    const store = await storeIn(root, new FaultPlan())
    const kept: string[] = []
    let error: unknown
    for (let n = 0; n < 20 && error === undefined; n++) {
      await store.put(Buffer.alloc(LARGE, `${n} `)).then(
        ({ key }) => kept.push(key),
        thrown => {
          error = thrown
        }
      )
    }
    expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'full' })
    expect(existsSync(root)).toBe(true)
    for (const key of kept) expect((await (await store.get(key))?.bytes())?.length).toBe(LARGE)
    expect((await store.verify()).corrupt).toEqual([])
  })
})

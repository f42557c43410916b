/** Pools that must not be used: each is refused with what was found and what to do, before anything on it changes. */
import { existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openStore, type PoolRefusedError, type StoreOptions } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { describe, expect, it } from 'vitest'
import { failureOf, mediumOf, opened, tamper, temporaryFolder } from './stores.js'

const small = 'a small blob'
const large = new Uint8Array(1_000).fill(7)

interface Paths {
  readonly file: string
  readonly root: string
}

function pathsIn(folder: string): Paths {
  return { file: join(folder, 'kv', 'pool.db'), root: join(folder, 'large') }
}

function tiers({ file, root }: Paths): StoreOptions {
  return { kv: sqlite({ file }), large: local({ root }), threshold: 100 }
}

/** A pool on disk with one entry in each tier, closed. */
async function pool(options: Partial<StoreOptions> = {}): Promise<Paths> {
  const paths = pathsIn(temporaryFolder())
  const store = await openStore({ ...tiers(paths), ...options })
  await store.put(small)
  await store.put(large)
  await store.close()
  return paths
}

async function volatilePool(root: string): Promise<void> {
  const store = await openStore({ kv: mem(), large: local({ root }), threshold: 100 })
  await store.put(large)
  await store.close()
}

/** Opening fails as told, changes nothing, and frees what it had opened: the folder can be used and removed. */
async function refused(paths: Paths, options: StoreOptions, expected: object, says: RegExp): Promise<Error> {
  const folder = dirname(paths.root)
  const before = mediumOf(folder)
  const error = await failureOf(() => openStore(options))
  expect(error).toMatchObject(expected)
  expect(error?.message).toMatch(says)
  expect(error?.message).not.toContain(folder)
  expect(mediumOf(folder)).toEqual(before)
  return error as Error
}

const POOL = { code: 'ERR_BLOB_POOL_REFUSED' }
const ENGINE = { code: 'ERR_BLOB_ENGINE', kind: 'corrupt', transient: false }

describe('a pool', () => {
  it('of another derivation is refused, naming the one to open it with', async () => {
    const paths = await pool()
    await refused(
      paths,
      { ...tiers(paths), derivation: 'sha256' },
      { ...POOL, reason: 'derivation' },
      /derivation: 'blake3'/
    )
    const other = await pool({ derivation: 'sha256' })
    await refused(other, tiers(other), { ...POOL, reason: 'derivation' }, /derivation: 'sha256'/)
  })

  it('of another window delay is refused, naming both and how to change it', async () => {
    const paths = await pool({ windowDelayMs: 5_000 })
    const says = /5000 ms, not 7000 ms.*store\.configure\(\{ windowDelayMs: 7000 \}\)/
    await refused(paths, { ...tiers(paths), windowDelayMs: 7_000 }, { ...POOL, reason: 'settings' }, says)
    const store = await opened(tiers(paths))
    await store.configure({ windowDelayMs: 7_000 })
    await store.close()
    await opened({ ...tiers(paths), windowDelayMs: 7_000 })
  })

  it('of a later protocol may be read, and refuses to be written, deleted from or swept', async () => {
    const paths = await pool()
    tamper(paths.file, 'UPDATE meta SET protocol = protocol + 1')
    const store = await opened(tiers(paths))
    const before = mediumOf(dirname(paths.root))
    const keys: string[] = []
    for await (const { key } of store.list()) keys.push(key)
    expect(keys.length).toBe(2)
    for (const key of keys) expect((await (await store.get(key))?.bytes())?.length).toBeGreaterThan(0)
    store.protect({ name: 'nobody', live: () => [] })
    const newer = { ...POOL, reason: 'newer', message: expect.stringMatching(/upgrade/) }
    for (const call of [
      () => store.put('new'),
      () => store.put(new Uint8Array(500)),
      () => store.put(small),
      () => store.delete(keys[0] as string),
      () => store.deleteMany(keys),
      () => store.pin(keys[0] as string),
      () => store.sweep(),
      () => store.maintain(),
      () => store.configure({ windowDelayMs: 1 }),
      () => store.verify({ repair: true })
    ]) {
      expect(await failureOf(call), call.toString()).toMatchObject(newer)
    }
    expect((await store.verify()).clean).toBe(true)
    await store.close()
    expect(Object.keys(mediumOf(dirname(paths.root)))).toEqual(Object.keys(before))
    const again = await opened(tiers(paths))
    expect(await again.usage()).toMatchObject({ entries: 2, stages: 0, window: 0, trash: 0 })
  })

  it('of a later layout of the file is refused', async () => {
    const paths = await pool()
    tamper(paths.file, 'PRAGMA user_version = 99')
    await refused(paths, tiers(paths), { ...POOL, reason: 'newer' }, /layout 99|later version/)
  })

  it('of a later format of the folder is refused', async () => {
    const paths = await pool()
    const claim = join(paths.root, 'alkblobs.json')
    writeFileSync(claim, JSON.stringify({ ...JSON.parse(readFileSync(claim, 'utf8')), format: 99 }))
    await refused(paths, tiers(paths), { ...POOL, reason: 'newer' }, /format 99|later version/)
  })
})

describe('media of two pools', () => {
  it('are refused together, either way round, and each goes on with its own', async () => {
    const [one, two] = [await pool(), await pool()]
    for (const mixed of [
      { file: one.file, root: two.root },
      { file: two.file, root: one.root }
    ]) {
      await refused(mixed, tiers(mixed), { ...POOL, reason: 'media' }, /another pool/)
    }
    expect(await (await opened(tiers(one))).usage()).toMatchObject({ entries: 2 })
  })

  it('are refused where the file is new and the folder is not', async () => {
    const paths = await pool()
    const fresh = { file: join(temporaryFolder(), 'new.db'), root: paths.root }
    await refused(fresh, tiers(fresh), { ...POOL, reason: 'media' }, /another pool/)
  })

  it('are refused where the file knows large bodies and the folder is empty: it may be an unmounted one', async () => {
    const paths = await pool()
    const empty = join(temporaryFolder(), 'new')
    const write = async () => {
      const store = await opened(tiers({ file: paths.file, root: empty }))
      await store.put(new Uint8Array(500))
    }
    expect(await failureOf(write)).toMatchObject({
      ...POOL,
      reason: 'media',
      message: expect.stringMatching(/mounted/)
    })
    expect(existsSync(empty)).toBe(false)
  })

  it('are bound at the first write where the file knows no large body yet', async () => {
    const folder = temporaryFolder()
    const alone = await openStore({ kv: sqlite({ file: join(folder, 'pool.db') }) })
    await alone.put(small)
    await alone.close()
    const store = await opened(tiers({ file: join(folder, 'pool.db'), root: join(folder, 'large') }))
    await store.put(large)
    expect(await store.usage()).toMatchObject({ perTier: { kv: { entries: 1 }, large: { entries: 1 } } })
  })

  it('are refused where a pool in memory owns the folder, or a pool on disk does', async () => {
    const paths = pathsIn(temporaryFolder())
    await volatilePool(paths.root)
    await refused(paths, tiers(paths), { ...POOL, reason: 'media' }, /in memory/)
    const durable = await pool()
    const inMemory = { kv: mem(), large: local({ root: durable.root }) }
    await refused(durable, inMemory, { ...POOL, reason: 'media' }, /durable/)
  })

  it('are refused when they are changed under an open store', async () => {
    const [one, two] = [await pool(), await pool()]
    const store = await opened(tiers(one))
    await store.put('first')
    writeFileSync(join(one.root, 'alkblobs.json'), readFileSync(join(two.root, 'alkblobs.json')))
    const { key } = await store.put(small)
    expect(key).toBeDefined()
    for await (const entry of store.list()) {
      if (entry.length !== large.length) continue
      rmSync(join(one.root), { recursive: true })
      mkdirSync(one.root)
      writeFileSync(join(one.root, 'alkblobs.json'), readFileSync(join(two.root, 'alkblobs.json')))
      const read = async () => (await store.get(entry.key))?.bytes()
      // Somebody else's folder proves nothing about our bodies: they are not gone, the medium is away.
      expect(await failureOf(read)).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'transient' })
      expect(await failureOf(() => store.verify({ repair: true }))).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    }
    expect((await store.usage()).perTier.large.entries).toBe(1)
  })

  it('in memory are held by one process at a time', async () => {
    const root = join(temporaryFolder(), 'large')
    const first = await opened({ kv: mem(), large: local({ root }), threshold: 100 })
    await first.put(large)
    const second = await opened({ kv: mem(), large: local({ root }), threshold: 100 })
    const error = (await failureOf(() => second.usage())) as unknown as PoolRefusedError
    expect(error).toMatchObject({ ...POOL, reason: 'held', message: expect.stringMatching(/close it there/) })
    await first.close()
    expect(await second.usage()).toMatchObject({ entries: 1 })
  })
})

describe('a file that is no pool', () => {
  it.each<[string, (paths: Paths) => void, object, RegExp]>([
    [
      'text',
      ({ file }) => writeFileSync(file, 'not a database '.repeat(500)),
      { ...POOL, reason: 'foreign' },
      /no SQLite|not a pool/
    ],
    [
      'the database of another application',
      ({ file }) => tamper(file, 'CREATE TABLE users (id)'),
      { ...POOL, reason: 'foreign' },
      /something else|not a pool/
    ],
    ['a folder', ({ file }) => mkdirSync(file), { ...POOL, reason: 'foreign' }, /no file|not a pool/]
  ])('is left alone: %s', async (_, make, expected, says) => {
    const paths = pathsIn(temporaryFolder())
    mkdirSync(dirname(paths.file), { recursive: true })
    make(paths)
    await refused(paths, tiers(paths), expected, says)
  })

  it('but empty is a virgin medium', async () => {
    const paths = pathsIn(temporaryFolder())
    mkdirSync(dirname(paths.file), { recursive: true })
    writeFileSync(paths.file, '')
    const store = await opened(tiers(paths))
    expect(await store.usage()).toMatchObject({ entries: 0 })
    await store.put(small)
    expect(await store.usage()).toMatchObject({ entries: 1 })
  })
})

describe('a damaged file', () => {
  it.each<[string, (file: string) => void]>([
    ['without its second half', file => truncateSync(file, readFileSync(file).length >> 1)],
    ['with pages of noise', file => overwrite(file, 100, 16_384 * 3)],
    ['with a damaged schema', file => overwrite(file, 100, 4_000)]
  ])('%s is called corrupt, when opened or when used, and the error says what to do', async (_, damage) => {
    const paths = await pool()
    damage(paths.file)
    const before = mediumOf(dirname(paths.root))
    const use = async () => {
      const store = await opened(tiers(paths))
      for await (const { key } of store.list()) await (await store.get(key))?.bytes()
      await store.put('new')
    }
    const error = await failureOf(use)
    expect(error).toMatchObject(ENGINE)
    expect(error?.message).toMatch(/verify|backup|restore/)
    const bodies = (medium: Record<string, string>) => Object.keys(medium).filter(path => path.startsWith('large'))
    expect(bodies(mediumOf(dirname(paths.root)))).toEqual(bodies(before))
  })

  const overwrite = (file: string, from: number, to: number) => {
    const content = readFileSync(file)
    for (let i = from; i < Math.min(to, content.length); i++) content[i] = (i * 131 + 7) % 256
    writeFileSync(file, content)
  }
})

describe('a folder that is no pool', () => {
  it.each<[string, (paths: Paths) => void, object, RegExp]>([
    [
      "somebody's documents",
      ({ root }) => writeFileSync(join(root, 'thesis.txt'), 'x'),
      { ...POOL, reason: 'foreign' },
      /not empty|choose another/
    ],
    ['with an empty claim', ({ root }) => claimed(root, ''), ENGINE, /alkblobs\.json/],
    ['with half a claim', ({ root }) => claimed(root, '{"format":1,"poo'), ENGINE, /alkblobs\.json/],
    ['with a claim that is null', ({ root }) => claimed(root, 'null'), ENGINE, /alkblobs\.json/],
    ['with a claim that is a list', ({ root }) => claimed(root, '[]'), ENGINE, /alkblobs\.json/],
    [
      'with a claim without a pool',
      ({ root }) => claimed(root, '{"format":1,"mode":"shared"}'),
      ENGINE,
      /alkblobs\.json/
    ],
    [
      'with a claim of an unknown mode',
      ({ root }) => claimed(root, '{"format":1,"poolId":"x","mode":"mine"}'),
      ENGINE,
      /alkblobs\.json/
    ],
    [
      'with a claim of format 0',
      ({ root }) => claimed(root, '{"format":0,"poolId":"x","mode":"shared"}'),
      ENGINE,
      /alkblobs\.json/
    ],
    [
      'with a huge claim',
      ({ root }) => claimed(root, `{"format":1,"poolId":"${'x'.repeat(100_000)}","mode":"shared"}`),
      ENGINE,
      /alkblobs\.json/
    ]
  ])('is left alone: %s', async (_, make, expected, says) => {
    const paths = pathsIn(temporaryFolder())
    mkdirSync(paths.root, { recursive: true, mode: 0o700 })
    make(paths)
    await refused(paths, tiers(paths), expected, says)
    await refused(paths, { kv: mem(), large: local({ root: paths.root }) }, expected, says)
  })

  it('with a damaged claim says what to do about it', async () => {
    const paths = await pool()
    claimed(paths.root, '{}')
    await refused(paths, tiers(paths), ENGINE, /restore|backup|put back|remove/)
  })

  const claimed = (root: string, text: string) => writeFileSync(join(root, 'alkblobs.json'), text)
})

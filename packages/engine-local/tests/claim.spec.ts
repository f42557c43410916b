// Whose folder it is, and that absence is believed only while that is known.
import { chmod, chown, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Locator, StageId } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { start, withChildren } from './processes.js'
import {
  atEnd,
  call,
  claimedRoot,
  exclusive,
  failure,
  newStage,
  openRoot,
  pathOf,
  putBody,
  readRange,
  shared,
  temporaryFolder
} from './support.js'

withChildren()

const asSuperuser = process.getuid?.() === 0

describe('claiming', () => {
  it('makes the folder and those above it, private, and is answered from then on', async () => {
    const root = join(await temporaryFolder(), 'a', 'b')
    const { bodies } = await openRoot(root)
    expect(await bodies.claimed(call)).toBeUndefined()
    expect(await bodies.claim(shared, call)).toEqual(shared)
    expect(await bodies.claimed(call)).toEqual(shared)
    expect(JSON.parse(await readFile(join(root, 'alkblobs.json'), 'utf8'))).toEqual({ format: 1, ...shared })
    expect(await readdir(root)).toEqual(['alkblobs.json', 'stage'])
    for (const folder of [root, join(root, '..'), join(root, 'stage')])
      expect((await stat(folder)).mode & 0o777).toBe(0o700)
  })

  it('answers the claim in force instead of making another', async () => {
    const root = await temporaryFolder()
    await claimedRoot(root)
    const { bodies } = await openRoot(root)
    expect(await bodies.claim({ ...shared, poolId: 'other' as never }, call)).toEqual(shared)
    expect(await bodies.claim(exclusive, call)).toEqual(shared)
    await expect(bodies.create(newStage(), {}, call)).rejects.toThrow('not claimed')
  })

  it('is taken over from the pool named alone, and what is in the folder stays readable (BODY-CLAIM-4)', async () => {
    const root = await temporaryFolder()
    const first = await claimedRoot(root)
    const locator = await putBody(first.bodies, [Buffer.from('a body')])
    const { engine, bodies } = await openRoot(root)
    atEnd(() => engine.close())
    const forked = { ...shared, poolId: 'forked' as never }
    expect(await bodies.reclaim?.('other' as never, forked, call)).toBe(false)
    expect(await bodies.claimed(call)).toEqual(shared)
    expect(await bodies.reclaim?.(shared.poolId, forked, call)).toBe(true)
    expect(await bodies.claim(forked, call)).toEqual(forked)
    expect(await readRange(bodies, locator)).toEqual(Buffer.from('a body'))
    expect(
      (await readdir(root)).filter(name => /^\.alkblobs/.test(name)),
      'no half of a claim is left'
    ).toEqual([])
    // A store of the original that has the folder still open finds another pool's, and makes and removes nothing.
    expect(await failure(first.engine, putBody(first.bodies, [Buffer.from('more')]))).toBe('transient')
    expect(first.engine.classify((await first.bodies.drop([locator], call))[0]?.error)).toBe('transient')
    expect(await readRange(bodies, locator)).toEqual(Buffer.from('a body'))
  })

  it('is taken over by one of several at once, the others are told that it is busy or gone', async () => {
    const root = await temporaryFolder()
    await claimedRoot(root)
    const stores = await Promise.all(Array.from({ length: 5 }, () => openRoot(root)))
    const ends = await Promise.allSettled(
      stores.map(({ bodies }, n) =>
        bodies.reclaim?.(shared.poolId, { ...shared, poolId: `forked-${n}` as never }, call)
      )
    )
    const won = ends.flatMap((end, n) => (end.status === 'fulfilled' && end.value === true ? [n] : []))
    expect(won.length).toBe(1)
    for (const [n, end] of ends.entries())
      if (end.status === 'rejected') expect(stores[n]?.engine.classify(end.reason)).toBe('conflict')
    expect((await stores[0]?.bodies.claimed(call))?.poolId).toBe(`forked-${won[0]}`)
  })

  it('has one winner among eight processes, and all see the same one', async () => {
    for (let round = 0; round < 3; round++) {
      const root = join(await temporaryFolder(), 'pool')
      const children = Array.from({ length: 8 }, (_, n) => start('claim', root, `pool-${n}`))
      const answers = await Promise.all(children.map(child => child.answer()))
      expect(answers[0]).toMatchObject({ mode: 'shared' })
      expect(new Set(answers.map(answer => JSON.stringify(answer))).size).toBe(1)
      expect(await (await openRoot(root)).bodies.claimed(call)).toEqual(answers[0])
      expect((await readdir(root)).filter(name => name !== 'stage')).toEqual(['alkblobs.json'])
    }
  })

  it('heeds neither what a crashed claim left behind nor what a new file system holds', async () => {
    const root = await temporaryFolder()
    await writeFile(join(root, `.alkblobs.${newStage()}`), '{')
    await mkdir(join(root, 'lost+found'))
    const { bodies } = await openRoot(root)
    expect(await bodies.claimed(call)).toBeUndefined()
    expect(await bodies.claim(shared, call)).toEqual(shared)
  })

  it.each([
    ['somebody else fills', 'foreign', (root: string) => writeFile(join(root, 'holiday.jpg'), 'x')],
    ['has an empty claim', 'corrupt', (root: string) => writeFile(join(root, 'alkblobs.json'), '')],
    [
      'has a claim of nobody',
      'corrupt',
      (root: string) => writeFile(join(root, 'alkblobs.json'), '{"format":1,"poolId":""}')
    ],
    ['has a claim that is no JSON', 'corrupt', (root: string) => writeFile(join(root, 'alkblobs.json'), '{"format":1')],
    [
      'has an endless claim',
      'corrupt',
      (root: string) =>
        writeFile(join(root, 'alkblobs.json'), `{"format":1,"poolId":"p","mode":"shared"}${' '.repeat(9_999)}`)
    ],
    ['has a claim that is a link', 'corrupt', (root: string) => symlink('/etc/hostname', join(root, 'alkblobs.json'))],
    ['comes from a later version', 'newer', (root: string) => writeFile(join(root, 'alkblobs.json'), '{"format":2}')],
    ['everybody may write to', 'denied', (root: string) => chmod(root, 0o777)]
  ])('refuses at open a folder that %s', async (_, kind, prepare) => {
    const root = await temporaryFolder()
    const { engine, bodies } = await openRoot(root)
    await prepare(root)
    expect(await failure(engine, openRoot(root))).toBe(kind)
    expect(await failure(engine, bodies.claim(shared, call))).toBe(kind)
  })

  it('refuses a file in the place of the folder', async () => {
    const { engine } = await openRoot(await temporaryFolder())
    const path = join(await temporaryFolder(), 'file')
    await writeFile(path, '')
    expect(await failure(engine, openRoot(path))).toBe('corrupt')
  })

  it.runIf(asSuperuser)('refuses a folder of another user', async () => {
    const root = await temporaryFolder()
    const { engine, bodies } = await openRoot(root)
    await chown(root, 12_345, 12_345)
    expect(await failure(engine, bodies.claim(shared, call))).toBe('denied')
  })
})

describe('while the medium is away, nothing is gone and nothing is dropped', () => {
  const away: [string, (root: string) => Promise<unknown>][] = [
    ['the root is gone', root => rename(root, `${root}.away`)],
    ['the root is an empty folder', root => rename(root, `${root}.away`).then(() => mkdir(root, 0o700))],
    [
      'the claim is another pool',
      root => writeFile(join(root, 'alkblobs.json'), JSON.stringify({ format: 1, ...shared, poolId: 'x' }))
    ],
    ['the claim is unreadable', root => writeFile(join(root, 'alkblobs.json'), 'rubbish')],
    ['the claim is gone', root => rm(join(root, 'alkblobs.json'))]
  ]
  it.each(away)('because %s', async (_, take) => {
    const root = join(await temporaryFolder(), 'root')
    const { engine, bodies } = await claimedRoot(root)
    const stage = newStage()
    const locator = await putBody(bodies, [Buffer.alloc(100_000)], stage)
    const missing = `${newStage()}.${'0'.repeat(64)}.5` as Locator
    const half = `${stage.slice(0, 4)}${newStage().slice(4)}` as StageId
    const writer = await bodies.create(half, {}, call)
    await writer.write(Buffer.from('half'))
    await take(root)
    expect(await failure(engine, bodies.length(missing, call))).toBe('transient')
    expect(await failure(engine, readRange(bodies, missing, 0, 9))).toBe('transient')
    expect(await failure(engine, readRange(bodies, missing))).toBe('transient')
    expect(await failure(engine, bodies.scan(undefined, 9, call))).toBe('transient')
    for (const { error } of await bodies.drop([locator, stage, missing], call))
      expect(engine.classify(error)).toBe('transient')
    if (!(await stat(join(root, 'stage')).catch(() => undefined))) {
      expect(await failure(engine, bodies.create(newStage(), {}, call))).toBe('transient')
    } else await rm(join(root, 'stage', half))
    expect(await failure(engine, writer.seal(`sha256:${'0'.repeat(64)}` as never))).toBe('transient')
    const kept = await stat(pathOf(root, locator)).catch(() => stat(pathOf(`${root}.away`, locator)))
    expect(kept.size).toBe(100_000)
    if (_ === 'the root is an empty folder') expect(await readdir(root)).toEqual([])
  })
})

// Whose folder it is, and that absence is believed only while that is known.
import { chmod, chown, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Locator, StageId } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { start, withChildren } from './processes.js'
import {
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

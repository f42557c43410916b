// Bodies written, read, dropped and scanned, in real folders.
import { mkdir, readFile, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Found, InvalidArgumentError, type Locator, type StageId, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { nodeFiles } from '../src/files.js'
import { local } from '../src/index.js'
import {
  call,
  claimedRoot,
  context,
  failure,
  filesIn,
  keyOf,
  newStage,
  openDescriptors,
  openRoot,
  pathOf,
  putBody,
  readRange,
  shared,
  temporaryFolder,
  within
} from './support.js'

const pattern = (length: number) => Buffer.from(Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 8)) & 255))

describe('options', () => {
  it.each([{ root: '' }, { root: 'a\0b' }, { root: 7 as never }])('refuses the root %o', config => {
    expect(() => local(config)).toThrow(InvalidArgumentError)
  })
  it.each([3, 1.5, Number.NaN, 65_537])('refuses openMax %s', openMax => {
    expect(() => local({ root: 'x', openMax })).toThrow(InvalidArgumentError)
  })
  it('opens nothing and makes nothing', async () => {
    const root = join(await temporaryFolder(), 'a', 'b')
    const engine = await local({ root }).open(context)
    expect(await engine.bodies?.claimed(call)).toBeUndefined()
    const locator = `${'0'.repeat(32)}.${'0'.repeat(64)}.1` as Locator
    // Nobody can have named a body of a folder that holds nothing: whoever asks for one sees another folder than its maker.
    await expect(engine.bodies?.length(locator, call)).rejects.toThrow('the medium is away')
    expect(await engine.bodies?.scan(undefined, 9, call)).toEqual({ found: [], next: undefined })
    await expect(engine.bodies?.create(newStage(), {}, call)).rejects.toThrow('not claimed')
    await expect(stat(join(root, '..'))).rejects.toThrow('ENOENT')
  })
})

describe('a body', () => {
  // Lengths around the small read, the window, and the step of early syncing.
  it.each([0, 1, 65_536, 65_537, WINDOW_LENGTH - 1, WINDOW_LENGTH, WINDOW_LENGTH + 1, 9 * WINDOW_LENGTH + 7])(
    'of %i bytes comes back, whatever the chunks',
    async length => {
      const { bodies } = await claimedRoot(await temporaryFolder())
      const bytes = pattern(length)
      for (const step of [length || 1, 65_536, 700_001, WINDOW_LENGTH + 13]) {
        const chunks = []
        for (let at = 0; at < length; at += step) chunks.push(bytes.subarray(at, at + step))
        const locator = await putBody(bodies, chunks)
        expect(await bodies.length(locator, call)).toBe(length)
        expect((await readRange(bodies, locator)).equals(bytes)).toBe(true)
      }
    }
  )

  it('is written in order when small and large chunks alternate on a slow disk, and no chunk is kept', async () => {
    const open: typeof nodeFiles.open = async (path, flags, mode) => {
      const handle = await nodeFiles.open(path, flags, mode)
      const write = handle.write as (...given: unknown[]) => unknown
      handle.write = (async (...given: unknown[]) => {
        await new Promise(resolve => setTimeout(resolve, 5))
        return await write.apply(handle, given)
      }) as never
      return handle
    }
    const { bodies } = await claimedRoot(await temporaryFolder(), { open })
    const bytes = pattern(12 * WINDOW_LENGTH)
    const writer = await bodies.create(newStage(), {}, call)
    const reused = Buffer.alloc(3 * WINDOW_LENGTH)
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const length = Math.min([1, 2.5 * WINDOW_LENGTH, 4_097, WINDOW_LENGTH][turn % 4] as number, bytes.length - at)
      bytes.copy(reused, 0, at, at + length)
      await writer.write(reused.subarray(0, length))
      reused.fill(0)
      at += length
    }
    const locator = await writer.seal(keyOf(bytes))
    expect((await readRange(bodies, locator)).equals(bytes)).toBe(true)
  })

  it('has ranges, clamped by what is held, in chunks of at most a window that nobody else uses', async () => {
    const { bodies } = await claimedRoot(await temporaryFolder())
    const bytes = pattern(3 * WINDOW_LENGTH + 7)
    const locator = await putBody(bodies, [bytes])
    for (const [start, end] of [
      [0, 1],
      [5, 70_000],
      [WINDOW_LENGTH - 1, 2 * WINDOW_LENGTH + 1],
      [bytes.length - 1, bytes.length + 9],
      [bytes.length, bytes.length + 1],
      [bytes.length + 5, 2 ** 52]
    ] as const) {
      expect((await readRange(bodies, locator, start, end)).equals(bytes.subarray(start, end))).toBe(true)
    }
    const lengths = []
    for await (const chunk of bodies.read(locator, { start: 0, end: bytes.length }, call)) {
      lengths.push(chunk.length)
      chunk.fill(0)
    }
    expect(lengths).toEqual([WINDOW_LENGTH, WINDOW_LENGTH, WINDOW_LENGTH, 7])
    expect((await readRange(bodies, locator)).equals(bytes)).toBe(true)
  })

  it('is invisible before the seal, private, and found from its stage id', async () => {
    const root = await temporaryFolder()
    const { bodies } = await claimedRoot(root)
    const stage = 'ab12'.padEnd(32, '0') as StageId
    const writer = await bodies.create(stage, {}, call)
    await writer.write(Buffer.from('hello'))
    expect(await filesIn(root)).toEqual([`stage/${stage}`])
    expect((await stat(join(root, 'stage', stage))).mode & 0o777).toBe(0o600)
    const locator = await writer.seal(keyOf(Buffer.from('hello')))
    expect(await filesIn(root)).toEqual([`ab/12/${stage}.${keyOf(Buffer.from('hello')).slice(7)}.5`])
    expect((await stat(join(root, 'ab'))).mode & 0o777).toBe(0o700)
    expect(await readFile(pathOf(root, locator), 'utf8')).toBe('hello')
  })

  it('is not made twice from one stage, half or sealed', async () => {
    const { engine, bodies } = await claimedRoot(await temporaryFolder())
    const stage = newStage()
    const writer = await bodies.create(stage, {}, call)
    await expect(bodies.create(stage, {}, call)).rejects.toThrow('EEXIST')
    await writer.write(Buffer.from('a'))
    await writer.seal(keyOf(Buffer.from('a')))
    expect(await failure(engine, bodies.create(stage, {}, call))).toBe('unknown')
    expect(await failure(engine, bodies.create('../../x' as StageId, {}, call))).toBe('corrupt')
  })

  it('leaves nothing when it is discarded, once, twice, or after its seal came too late', async () => {
    const root = await temporaryFolder()
    const { bodies } = await claimedRoot(root)
    const before = await openDescriptors()
    for (const seals of [false, true]) {
      const writer = await bodies.create(newStage(), {}, call)
      await writer.write(pattern(WINDOW_LENGTH + 5))
      if (seals) await writer.seal(keyOf(Buffer.from('any')))
      await writer.discard()
      await writer.discard()
      if (!seals) await expect(writer.write(Buffer.from('x'))).rejects.toThrow('discarded')
    }
    expect(await filesIn(root)).toEqual([])
    expect(await openDescriptors()).toBe(before)
  })

  it('that was dropped while it was written is gone, and does not come back by its seal', async () => {
    const root = await temporaryFolder()
    const { engine, bodies } = await claimedRoot(root)
    const stage = newStage()
    const writer = await bodies.create(stage, {}, call)
    await writer.write(Buffer.from('late'))
    expect(await bodies.drop([stage], call)).toEqual([{ what: stage }])
    expect(await failure(engine, writer.seal(keyOf(Buffer.from('late'))))).toBe('gone')
    expect(await filesIn(root)).toEqual([])
  })
})

describe('reading', () => {
  it('calls gone only what is not there', async () => {
    const { engine, bodies } = await claimedRoot(await temporaryFolder())
    const locator = await putBody(bodies, [pattern(100_000)])
    await bodies.drop([locator], call)
    expect(await bodies.length(locator, call)).toBeUndefined()
    expect(await failure(engine, readRange(bodies, locator, 0, 10))).toBe('gone')
    expect(await failure(engine, readRange(bodies, locator))).toBe('gone')
    expect(await failure(engine, readRange(bodies, '../alkblobs.json' as Locator))).toBe('corrupt')
  })

  it('yields what a truncated file holds, and tells its length', async () => {
    const root = await temporaryFolder()
    const { bodies } = await claimedRoot(root)
    const locator = await putBody(bodies, [pattern(100_000)])
    await truncate(pathOf(root, locator), 70_000)
    expect(await bodies.length(locator, call)).toBe(70_000)
    expect(await readRange(bodies, locator)).toHaveLength(70_000)
    const { found } = await bodies.scan(undefined, 9, call)
    expect(found[0]?.sealed).toMatchObject({ length: 70_000, whole: false })
  })

  it.each(['folder', 'link'])('refuses a %s in the place of the body', async kind => {
    const root = await temporaryFolder()
    const { engine, bodies } = await claimedRoot(root)
    const bytes = pattern(100_000)
    const locator = await putBody(bodies, [bytes])
    const path = pathOf(root, locator)
    await rename(path, join(root, 'elsewhere'))
    if (kind === 'folder') await mkdir(path)
    else await symlink(join(root, 'elsewhere'), path)
    expect(await failure(engine, bodies.length(locator, call))).toBe('corrupt')
    expect(await failure(engine, readRange(bodies, locator, 0, 9))).toBe('corrupt')
    expect(await failure(engine, readRange(bodies, locator))).toBe('corrupt')
    expect((await bodies.scan(undefined, 9, call)).found).toEqual([])
  })

  it.each(['outer', 'inner'])('follows no link in the place of the %s folder of a shard', async which => {
    const root = await temporaryFolder()
    const outside = await temporaryFolder()
    const { engine, bodies } = await claimedRoot(root)
    const stage = newStage()
    const locator = await putBody(bodies, [pattern(100_000)], stage)
    const shard = which === 'outer' ? join(root, stage.slice(0, 2)) : join(root, stage.slice(0, 2), stage.slice(2, 4))
    await rename(shard, join(outside, 'moved'))
    await symlink(join(outside, 'moved'), shard)
    for (const refused of [
      () => bodies.length(locator, call),
      () => readRange(bodies, locator, 0, 9),
      () => readRange(bodies, locator),
      () => putBody(bodies, [pattern(9)], `${stage.slice(0, 4)}${newStage().slice(4)}` as StageId)
    ]) {
      expect(await failure(engine, refused())).toBe('corrupt')
    }
    for (const what of [locator, stage]) {
      expect(engine.classify((await bodies.drop([what], call))[0]?.error)).toBe('corrupt')
    }
    expect(await filesIn(outside)).toHaveLength(1)
    expect((await bodies.scan(undefined, 9, call)).found).toEqual([])
    expect(await filesIn(join(root, 'stage'))).toEqual([])
  })

  it('refuses a link in the place of the folder for half-written bodies', async () => {
    const root = await temporaryFolder()
    const outside = await temporaryFolder()
    const { engine, bodies } = await claimedRoot(root)
    const stage = newStage()
    await writeFile(join(outside, stage), 'not ours')
    await rm(join(root, 'stage'), { recursive: true })
    await symlink(outside, join(root, 'stage'))
    expect(await failure(engine, putBody(bodies, [pattern(9)]))).toBe('corrupt')
    expect(engine.classify((await bodies.drop([stage], call))[0]?.error)).toBe('corrupt')
    expect(await filesIn(outside)).toEqual([stage])
  })

  it('opens nothing before the first pull, and nothing stays open however it ends', async () => {
    const { engine, bodies } = await openRoot(await temporaryFolder())
    await bodies.claim(shared, call)
    const locator = await putBody(bodies, [pattern(3 * WINDOW_LENGTH)])
    const before = await openDescriptors()
    const range = { start: 0, end: 3 * WINDOW_LENGTH }
    for (let turn = 0; turn < 1_000; turn++) {
      bodies.read(locator, range, call)
      await bodies.read(locator, range, call)[Symbol.asyncIterator]().return?.()
      if (turn % 10 > 0) continue
      for await (const _ of bodies.read(locator, range, call)) break
      const failing = async () => {
        for await (const _ of bodies.read(locator, range, call)) throw new Error('consumer')
      }
      await expect(failing()).rejects.toThrow('consumer')
    }
    expect(await openDescriptors()).toBe(before)
    // Pulled once and forgotten: the engine's close ends it.
    await bodies.read(locator, range, call)[Symbol.asyncIterator]().next()
    expect(await openDescriptors()).toBe(before + 1)
    await engine.close()
    expect(await openDescriptors()).toBe(before)
  })

  it('stops at its signal', async () => {
    const { bodies } = await claimedRoot(await temporaryFolder())
    const locator = await putBody(bodies, [pattern(3 * WINDOW_LENGTH)])
    const stop = new AbortController()
    const read = async () => {
      const range = { start: 0, end: 3 * WINDOW_LENGTH }
      for await (const _ of bodies.read(locator, range, { ...call, signal: stop.signal }))
        stop.abort(new Error('enough'))
    }
    await expect(read()).rejects.toThrow('enough')
  })
})

describe('drop', () => {
  it('removes by stage or by locator, each once more for nothing, and leaves the others', async () => {
    const root = await temporaryFolder()
    const { bodies } = await claimedRoot(root)
    const [one, two, three] = [newStage(), newStage(), newStage()]
    const first = await putBody(bodies, [pattern(10)], one)
    const second = await putBody(bodies, [pattern(10)], two)
    await putBody(bodies, [pattern(10)], `${one.slice(0, 4)}${'f'.repeat(28)}` as StageId)
    await bodies.create(three, {}, call)
    for (let turn = 0; turn < 2; turn++) {
      expect(await bodies.drop([first, two, three], call)).toEqual([{ what: first }, { what: two }, { what: three }])
    }
    expect(await bodies.length(second, call)).toBeUndefined()
    expect(await filesIn(root)).toHaveLength(1)
  })

  it('reports each failure by itself, and begins nothing after the deadline', async () => {
    const root = await temporaryFolder()
    const { engine, bodies } = await claimedRoot(root)
    const stage = newStage()
    await putBody(bodies, [pattern(10)], stage)
    // What could never be a name here is the name of nothing.
    const results = await bodies.drop(['nonsense' as Locator, stage], call)
    expect(results.map(({ error }) => error && engine.classify(error))).toEqual([undefined, undefined])
    const kept = await putBody(bodies, [pattern(10)])
    const late = await bodies.drop([kept], within(-1))
    expect(engine.classify(late[0]?.error)).toBe('transient')
    expect(await bodies.length(kept, call)).toBe(10)
  })
})

describe('scan', () => {
  it('pages through everything ever made, once, in a stable order, and nothing else', async () => {
    const root = await temporaryFolder()
    const { bodies } = await claimedRoot(root)
    const made: Found[] = []
    const stages = Array.from({ length: 12 }, (_, n) => `${n % 2 ? 'a0b1' : '0c'}${newStage()}`.slice(0, 32) as StageId)
    for (const [n, stage] of stages.entries()) {
      if (n < 4) {
        await bodies.create(stage, {}, call)
        made.push({ stage })
      } else {
        const locator = await putBody(bodies, [pattern(n)], stage)
        made.push({ stage, sealed: { locator, key: keyOf(pattern(n)), length: n, whole: true } })
      }
    }
    const foreign = ['stage/README', 'a0/b1/note.txt', 'zz', 'a0/file', `a0/b1/${'0c'.repeat(16)}.${'0'.repeat(64)}.3`]
    for (const path of foreign) await writeFile(join(root, path), 'x')
    await mkdir(join(root, 'stage', newStage()))
    for (const limit of [1, 2, 5, 100]) {
      const found: Found[] = []
      for (let after: string | undefined, pages = 0; pages < 100; pages++) {
        const page = await bodies.scan(after, limit, call)
        expect(page.found.length).toBeLessThanOrEqual(limit)
        found.push(...page.found)
        after = page.next
        if (after === undefined) break
      }
      const byStage = (one: Found, other: Found) => (one.stage < other.stage ? -1 : 1)
      expect([...found].sort(byStage)).toEqual([...made].sort(byStage))
    }
  })
})

// A full disk, a file too large, another device, too few descriptors, no rights: typed, and without residue.
import { execFileSync } from 'node:child_process'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Locator, type StageId, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { nodeFiles } from '../src/files.js'
import { start, withChildren } from './processes.js'
import {
  atEnd,
  call,
  claimedRoot,
  failure,
  filesIn,
  newStage,
  openDescriptors,
  putBody,
  readRange,
  temporaryFolder,
  within
} from './support.js'

withChildren()

const run = (command: string, given: string[]) => execFileSync(command, given, { stdio: 'ignore' })

function mountTmpfs(folder: string): boolean {
  try {
    run('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs', folder])
  } catch {
    return false
  }
  atEnd(async () => run('umount', ['-l', folder]))
  return true
}
const denies = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }))

describe('no space', () => {
  it('on the disk or in the file limit fails the put as full, leaves nothing, and the next one is whole', async () => {
    const root = await temporaryFolder()
    const mounted = mountTmpfs(root)
    // Whoever may not mount is bounded by the kernel in another way. The unit of `ulimit -f` is 512 or 1,024 bytes.
    const child = start('fill', root, 'pool-1', mounted ? undefined : '-f 4096')
    expect(await child.answer()).toEqual({ kind: 'full', code: mounted ? 'ENOSPC' : 'EFBIG' })
    expect(await filesIn(root)).toEqual([])
    const { bodies } = await claimedRoot(root)
    const bytes = Buffer.alloc(2 * WINDOW_LENGTH, 5)
    expect((await readRange(bodies, await putBody(bodies, [bytes]))).equals(bytes)).toBe(true)
  })

  it('is full too where a file may not grow', async () => {
    const root = await temporaryFolder()
    expect(await start('fill', root, 'pool-1', '-f 4096').answer()).toEqual({ kind: 'full', code: 'EFBIG' })
    expect(await filesIn(root)).toEqual([])
  })
})

describe('another device', () => {
  it('as the root is no matter, as a shard it is refused, and nothing is copied', async () => {
    const root = await temporaryFolder()
    const { engine, bodies } = await claimedRoot(root)
    const stage = newStage()
    const shard = join(root, stage.slice(0, 2))
    await mkdir(shard)
    const mounted = mountTmpfs(shard)
    const onOther = mounted ? bodies : (await claimedRoot(root, { rename: denies('EXDEV') })).bodies
    const error = await putBody(onOther, [Buffer.alloc(100)], stage).catch(error => error)
    expect(error.code).toBe('EXDEV')
    expect(engine.classify(error)).toBe('corrupt')
    expect(await filesIn(root)).toEqual([])
  })
})

describe('no rights', () => {
  it.each(['EACCES', 'EROFS', 'EPERM'])(
    '(%s) is denied, and never absent',
    async code => {
      const root = await temporaryFolder()
      const { bodies } = await claimedRoot(root)
      const locator = await putBody(bodies, [Buffer.alloc(100_000)])
      let armed = false
      const denied = (step: keyof typeof nodeFiles) =>
        ((...given: unknown[]) =>
          armed ? denies(code)() : (nodeFiles[step] as (...given: unknown[]) => unknown)(...given)) as never
      const { engine, bodies: readOnly } = await claimedRoot(root, {
        lstat: denied('lstat'),
        mkdir: denied('mkdir'),
        rename: denied('rename'),
        unlink: denied('unlink')
      })
      armed = true
      expect(await failure(engine, readOnly.length(locator, call))).toBe('denied')
      expect(await failure(engine, readRange(readOnly, locator))).toBe('denied')
      expect(await failure(engine, readOnly.create(newStage(), {}, call))).toBe('denied')
      expect(engine.classify((await readOnly.drop([locator], call))[0]?.error)).toBe('denied')
      expect(await bodies.length(locator, call)).toBe(100_000)
    },
    10_000
  )

  it('is what a real read-only folder says', async () => {
    const root = await temporaryFolder()
    if (!mountTmpfs(root)) await chmod(root, 0o700)
    const { engine, bodies } = await claimedRoot(root)
    const locator = await putBody(bodies, [Buffer.alloc(100)])
    const superuser = process.getuid?.() === 0
    if (superuser) run('mount', ['-o', 'remount,ro', root])
    else for (const folder of ['stage', locator.slice(0, 2)]) await chmod(join(root, folder), 0o500)
    expect(await failure(engine, bodies.create(newStage(), {}, call))).toBe('denied')
    expect(await bodies.length(locator, call)).toBe(100)
    if (superuser) {
      expect(engine.classify((await bodies.drop([locator], call))[0]?.error)).toBe('denied')
      expect(await readRange(bodies, locator)).toHaveLength(100)
    } else await chmod(join(root, locator.slice(0, 2)), 0o700)
  })
})

describe('descriptors', () => {
  const large = Buffer.alloc(3 * WINDOW_LENGTH, 3)

  it('that the system refuses are exhausted, and nothing is left', async () => {
    const root = await temporaryFolder()
    // Node.js itself needs about twenty, and the claim one.
    const child = start('exhaust', root, 'pool-1', '-n 40')
    const answer = (await child.answer()) as { kind: string; code: string; opened: number }
    expect(answer).toMatchObject({ kind: 'exhausted', code: 'EMFILE' })
    expect(answer.opened).toBeGreaterThan(0)
    expect(await filesIn(root)).toEqual([])
  })

  it('are bounded: a writer beyond the bound waits its turn, and fails as exhausted at its deadline', async () => {
    const { engine, bodies } = await claimedRoot(await temporaryFolder(), {}, { openMax: 4 })
    const writers = await Promise.all([1, 2, 3].map(() => bodies.create(newStage(), {}, call)))
    const began = performance.now()
    expect(await failure(engine, bodies.create(newStage(), {}, within(100)))).toBe('exhausted')
    expect(performance.now() - began).toBeGreaterThan(90)
    const stop = new AbortController()
    const aborted = bodies.create(newStage(), {}, { ...call, signal: stop.signal })
    const order: number[] = []
    const waiting = [1, 2].map(n =>
      bodies.create(newStage(), {}, within(5_000)).then(writer => {
        order.push(n)
        return writer
      })
    )
    stop.abort(new Error('no longer'))
    await expect(aborted).rejects.toThrow('no longer')
    for (const writer of writers) await writer.discard()
    for (const writer of await Promise.all(waiting)) await writer.discard()
    expect(order).toEqual([1, 2])
  })

  it('never block a get, however many puts that are fed by gets hold the others', async () => {
    const before = await openDescriptors()
    const { bodies } = await claimedRoot(await temporaryFolder(), {}, { openMax: 4 })
    const source = await putBody(bodies, [large])
    const copy = async () => {
      // The source is opened first, as core does while it waits for enough bytes to know the tier.
      const first = bodies.read(source, { start: 0, end: large.length }, call)[Symbol.asyncIterator]()
      const head = await first.next()
      const writer = await bodies.create(newStage(), {}, within(10_000))
      await writer.write(head.value as Uint8Array)
      for (let step = await first.next(); !step.done; step = await first.next()) await writer.write(step.value)
      for await (const chunk of bodies.read(source, { start: 0, end: large.length }, call)) await writer.write(chunk)
      return await writer.seal(`sha256:${'1'.repeat(64)}` as never)
    }
    let most = 0
    const watch = setInterval(async () => (most = Math.max(most, (await openDescriptors()) - before)), 1)
    const copies = await Promise.all(Array.from({ length: 24 }, copy))
    clearInterval(watch)
    for (const locator of copies) expect(await bodies.length(locator as Locator, call)).toBe(2 * large.length)
    // The bodies' four, the folder the watch itself reads, and what a call opens for a moment.
    expect(most).toBeLessThan(4 + 1 + 24)
    expect(await openDescriptors()).toBe(before)
  })

  it('lent by idle readers are taken when somebody needs one, and the reader goes on where it was', async () => {
    const { bodies } = await claimedRoot(await temporaryFolder(), {}, { openMax: 4 })
    const bytes = Buffer.concat([Buffer.alloc(WINDOW_LENGTH, 1), Buffer.alloc(WINDOW_LENGTH, 2), Buffer.from([3])])
    const locator = await putBody(bodies, [bytes])
    const before = await openDescriptors()
    const readers = Array.from({ length: 10 }, () =>
      bodies.read(locator, { start: 0, end: bytes.length }, call)[Symbol.asyncIterator]()
    )
    const heads = await Promise.all(readers.map(reader => reader.next()))
    expect(await openDescriptors()).toBe(before + 4)
    const writers = await Promise.all([1, 2, 3].map(() => bodies.create(newStage(), {}, within(1_000))))
    expect(await openDescriptors()).toBe(before + 4)
    for (const [n, reader] of readers.entries()) {
      const chunks = [heads[n]?.value as Uint8Array]
      for (let step = await reader.next(); !step.done; step = await reader.next()) chunks.push(step.value)
      expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    }
    for (const writer of writers) await writer.discard()
    expect(await openDescriptors()).toBe(before)
  })
})

describe('many writers', () => {
  it('of the same bytes, in several stores, make one file each and leave no half', async () => {
    const root = await temporaryFolder()
    const stores = await Promise.all([1, 2, 3, 4].map(() => claimedRoot(root)))
    const bytes = Buffer.alloc(70_000, 9)
    const puts = Array.from({ length: 200 }, (_, n) => putBody((stores[n % 4] as (typeof stores)[0]).bodies, [bytes]))
    const locators = await Promise.all(puts)
    expect(new Set(locators).size).toBe(200)
    expect(await filesIn(join(root, 'stage'))).toEqual([])
    const stages = locators.map(locator => locator.slice(0, 32) as StageId)
    expect((await stores[0]?.bodies.drop(stages, call))?.every(({ error }) => error === undefined)).toBe(true)
    expect(await filesIn(root)).toEqual([])
    expect(await nodeFiles.readdir(join(root, 'stage'))).toEqual([])
  })
})

// Small ranges keep their file open for the next one: never too many, never longer than the body, never in anybody's way.
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync, truncateSync, unlinkSync } from 'node:fs'
import { rename, unlink, writeFile } from 'node:fs/promises'
import { EngineFault, type Locator } from '@alkblobs/core/engine'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  call,
  claimedRoot,
  failure,
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

afterEach(() => void vi.useRealTimers())

const BODY = randomBytes(200_000)

/** A folder with bodies, and how often a file was opened in one go. */
async function withBodies(count: number, openMax?: number) {
  const root = await temporaryFolder()
  let opened = 0
  const counting: typeof openSync = (...given) => {
    opened += 1
    return openSync(...given)
  }
  const { engine, bodies } = await claimedRoot(root, { openSync: counting }, openMax === undefined ? {} : { openMax })
  const locators: Locator[] = []
  for (let n = 0; n < count; n++) locators.push(await putBody(bodies, [BODY]))
  const read = async (locator: Locator, start = 0) =>
    (await readRange(bodies, locator, start, start + 100)).equals(BODY.subarray(start, start + 100))
  return { root, engine, bodies, locators, read, opens: () => opened }
}

describe('a file kept for small ranges', () => {
  it('is opened once for many of them', async () => {
    const { locators, read, opens } = await withBodies(2)
    for (let n = 0; n < 10; n++) for (const locator of locators) expect(await read(locator, n * 1_000)).toBe(true)
    expect(opens()).toBe(2)
  })

  it('of a body that was removed or replaced by name gives nothing of what was', async () => {
    const { root, engine, bodies, locators, read } = await withBodies(2)
    const [removed, replaced] = locators as [Locator, Locator]
    for (const locator of locators) await read(locator)
    await unlink(pathOf(root, removed))
    expect(await failure(engine, read(removed))).toBe('gone')
    await writeFile(`${pathOf(root, replaced)}.new`, Buffer.alloc(200_000, 7))
    await rename(`${pathOf(root, replaced)}.new`, pathOf(root, replaced))
    expect((await readRange(bodies, replaced, 5, 9)).equals(Buffer.alloc(4, 7))).toBe(true)
  })

  it('of a body that was removed is asked for once in a turn of the event loop, and never in a later one', async () => {
    const { root, engine, bodies, locators, read } = await withBodies(1)
    const [locator] = locators as [Locator]
    for (let turn = 0; turn < 3; turn++) {
      await read(locator)
      await new Promise(setImmediate)
    }
    await read(locator)
    unlinkSync(pathOf(root, locator))
    // As if it had come a moment before.
    expect(bodies.readNow?.(locator, { start: 0, end: 9 })).toEqual(BODY.subarray(0, 9))
    await new Promise(setImmediate)
    expect(() => bodies.readNow?.(locator, { start: 0, end: 9 })).toThrow('ENOENT')
    expect(await failure(engine, read(locator))).toBe('gone')
  })

  it('gives small ranges at once, and leaves what it cannot give whole to a read', async () => {
    const { root, bodies, locators, opens } = await withBodies(2)
    const [whole, short] = locators as [Locator, Locator]
    for (const [start, end] of [
      [0, 1],
      [7, 65_543],
      [199_999, 200_000]
    ] as const) {
      const bytes = bodies.readNow?.(whole, { start, end }) as Uint8Array
      expect(BODY.subarray(start, end).equals(bytes)).toBe(true)
      expect(bytes.buffer.byteLength).toBe(end - start)
    }
    expect(opens()).toBe(1)
    expect(bodies.readNow?.(whole, { start: 0, end: 64 * 1024 + 1 })).toBeUndefined()
    truncateSync(pathOf(root, short), 100)
    expect(bodies.readNow?.(short, { start: 0, end: 101 })).toBeUndefined()
    expect(BODY.subarray(0, 100).equals(bodies.readNow?.(short, { start: 0, end: 100 }) as Uint8Array)).toBe(true)
    expect(() => bodies.readNow?.('../etc/passwd' as Locator, { start: 0, end: 1 })).toThrow(EngineFault)
  })

  it('is closed by the drop of its body, so that its bytes are gone from the disk', async () => {
    const { engine, bodies, locators, read } = await withBodies(2)
    const before = await openDescriptors()
    const [byLocator, byStage] = locators as [Locator, Locator]
    for (const locator of locators) await read(locator)
    expect(await openDescriptors()).toBe(before + 2)
    await bodies.drop([byLocator], call)
    await bodies.drop([byStage.slice(0, 32) as never], call)
    expect(await openDescriptors()).toBe(before)
    for (const locator of locators) expect(await failure(engine, read(locator))).toBe('gone')
  })

  it('is closed by a drop that was under way when it was opened', async () => {
    const root = await temporaryFolder()
    let reading = () => {}
    const watched: typeof unlink = async path => {
      reading()
      await unlink(path)
    }
    const { bodies } = await claimedRoot(root, { unlink: watched })
    const locator = await putBody(bodies, [BODY])
    const before = await openDescriptors()
    let read: Uint8Array | undefined
    reading = () => {
      read = bodies.readNow?.(locator, { start: 0, end: 9 })
    }
    await bodies.drop([locator], call)
    expect(read).toEqual(BODY.subarray(0, 9))
    expect(await openDescriptors()).toBe(before)
    expect(() => bodies.readNow?.(locator, { start: 0, end: 9 })).toThrow('ENOENT')
  })

  it('that reports an error when it makes way for another harms neither that nor the count of descriptors', async () => {
    const root = await temporaryFolder()
    let failing = false
    const watched: typeof closeSync = descriptor => {
      closeSync(descriptor)
      if (failing) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    }
    const { bodies } = await claimedRoot(root, { closeSync: watched }, { openMax: 20 })
    const locators: Locator[] = []
    for (let n = 0; n < 17; n++) locators.push(await putBody(bodies, [BODY]))
    for (const locator of locators.slice(0, 16)) await readRange(bodies, locator, 0, 9)
    const before = await openDescriptors()
    failing = true
    for (let n = 0; n < 100; n++)
      expect(BODY.subarray(0, 9).equals(await readRange(bodies, locators[n % 17] as Locator, 0, 9))).toBe(true)
    expect(await openDescriptors()).toBe(before)
    failing = false
    // All but those that are kept can be had yet, and these make way.
    const writers = await Promise.all(Array.from({ length: 15 }, () => bodies.create(newStage(), {}, within(1_000))))
    for (const writer of writers) await writer.discard()
  })

  it('is one of sixteen at most, the least recently used goes first', async () => {
    const { locators, read, opens } = await withBodies(18)
    const before = await openDescriptors()
    const [first] = locators as [Locator]
    for (const locator of locators) {
      await read(locator)
      await read(first)
    }
    expect(await openDescriptors()).toBe(before + 16)
    expect(opens()).toBe(18)
  })

  it('makes way for whoever needs its descriptor, and a range is read all the same where there is none to keep', async () => {
    const { bodies, locators, read } = await withBodies(6, 4)
    const before = await openDescriptors()
    for (const locator of locators) expect(await read(locator)).toBe(true)
    expect(await openDescriptors()).toBe(before + 4)
    const writers = []
    for (let n = 0; n < 3; n++) writers.push(await bodies.create(newStage(), {}, within(1_000)))
    expect(await openDescriptors()).toBe(before + 4)
    for (const locator of locators) expect(await read(locator)).toBe(true)
    for (const writer of writers) await writer.discard()
  })

  it('is closed when nobody has read from it for a second', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { locators, read } = await withBodies(2)
    const [idle, busy] = locators as [Locator, Locator]
    const before = await openDescriptors()
    await read(idle)
    for (let n = 0; n < 4; n++) {
      await read(busy)
      vi.advanceTimersByTime(300)
    }
    expect(await openDescriptors()).toBe(before + 1)
    vi.advanceTimersByTime(1_000)
    expect(await openDescriptors()).toBe(before)
    expect(vi.getTimerCount()).toBe(0)
    expect(await read(idle)).toBe(true)
  })

  it('is closed with the engine', async () => {
    const root = await temporaryFolder()
    const { engine, bodies } = await openRoot(root)
    await bodies.claim(shared, call)
    const locator = await putBody(bodies, [BODY])
    const before = await openDescriptors()
    await readRange(bodies, locator, 0, 100)
    expect(await openDescriptors()).toBe(before + 1)
    await engine.close()
    expect(await openDescriptors()).toBe(before)
  })

  it('is not kept when a read from it failed', async () => {
    const root = await temporaryFolder()
    let fails = false
    const breaking = (...given: Parameters<typeof readSync>) => {
      if (fails) throw Object.assign(new Error('the disk failed'), { code: 'EIO' })
      return readSync(...given)
    }
    const { bodies } = await claimedRoot(root, { readSync: breaking as typeof readSync })
    const locator = await putBody(bodies, [BODY])
    const before = await openDescriptors()
    fails = true
    await expect(readRange(bodies, locator, 0, 100)).rejects.toThrow('the disk failed')
    fails = false
    await readRange(bodies, locator, 0, 100)
    expect(await openDescriptors()).toBe(before + 1)
    fails = true
    await expect(readRange(bodies, locator, 0, 100)).rejects.toThrow('the disk failed')
    expect(await openDescriptors()).toBe(before)
  })
})

/** What lies under a locator: `read`, `length`. */
import type { FileHandle } from 'node:fs/promises'
import { type Call, EngineFault, type Locator, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { Loan } from '../descriptors.js'
import { checkFile, errno, type Files, openFile, READ } from '../files.js'
import { type BodyName, bodyPath, parseLocator } from '../layout.js'
import type { Medium } from '../medium.js'
import { confirm } from './claim.js'
import { checkShard, checkShardSync } from './shard.js'

/**
 * A range up to this long is read in one blocking go: five times as many random ranges of 64 KiB a second as through the thread pool (two
 * cores under load, page cache warm). Each blocks the event loop for some ten microseconds from the page cache, and for one access where
 * it comes from the disk; a longer range would block it noticeably, and gains less.
 */
const BLOCKING_LENGTH = 64 * 1024

export interface Range {
  readonly start: number
  readonly end: number
}

/** Opens nothing before the first pull; closes however the loop ends, but for what is kept for the next small range. */
export function readBody(medium: Medium, locator: Locator, range: Range, call: Call): AsyncIterable<Uint8Array> {
  const isSmall = range.end - range.start <= BLOCKING_LENGTH
  return isSmall ? new SmallRange(medium, locator, range, call) : readWindows(medium, locator, range, call)
}

/**
 * One window is read ahead of who goes on, beside what its consumer does with the last one, but for the first: who wants no more than that,
 * is not charged. A window costs as much to read as to hash.
 */
async function* readWindows(medium: Medium, locator: Locator, range: Range, call: Call): AsyncGenerator<Uint8Array> {
  const name = parseLocator(locator, medium.algorithm)
  call.signal?.throwIfAborted()
  const file = new LentFile(medium, name, call)
  let coming: Promise<Buffer> | undefined
  try {
    for (let at = range.start; at < range.end; ) {
      call.signal?.throwIfAborted()
      const wanted = Math.min(WINDOW_LENGTH, range.end - at)
      const window = await (coming ?? file.window(at, wanted))
      coming = undefined
      // The medium holds no more; what that means is for the reader of the whole to judge.
      const isShort = window.length < wanted
      at += window.length
      if (!isShort && at < range.end && at - range.start > WINDOW_LENGTH) {
        coming = file.window(at, Math.min(WINDOW_LENGTH, range.end - at))
        coming.catch(toldAtTheNextPull)
      }
      if (window.length > 0) yield window
      if (isShort) return
    }
  } finally {
    await coming?.catch(toldAtTheNextPull)
    await file.close()
  }
}

/** A read ahead that failed fails the pull that asks for it; if none does, nobody wanted those bytes. */
function toldAtTheNextPull(): void {}

/** A small range, all of it, or nothing. */
export function readNow(medium: Medium, locator: Locator, range: Range): Uint8Array | undefined {
  const length = range.end - range.start
  if (length > BLOCKING_LENGTH) return undefined
  const bytes = readAtOnce(medium, locator, range)
  return bytes.length === length ? bytes : undefined
}

/** The bytes really held; `undefined` if nothing lies there while the medium is readable. */
export async function bodyLength(medium: Medium, locator: Locator): Promise<number | undefined> {
  const name = parseLocator(locator, medium.algorithm)
  try {
    await checkShard(medium, name.stage)
    const stats = await medium.files.lstat(bodyPath(medium.root, name))
    checkFile(stats)
    return stats.size
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
    await confirm(medium)
    return undefined
  }
}

/** One chunk, read in one go. Not a generator: that would cost as much as the read. It holds nothing, so it has no `return`. */
class SmallRange implements AsyncIterableIterator<Uint8Array> {
  readonly #medium: Medium
  readonly #locator: Locator
  readonly #range: Range
  readonly #call: Call
  #isRead = false

  constructor(medium: Medium, locator: Locator, range: Range, call: Call) {
    this.#medium = medium
    this.#locator = locator
    this.#range = range
    this.#call = call
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#isRead) return { done: true, value: undefined }
    this.#isRead = true
    this.#call.signal?.throwIfAborted()
    try {
      const bytes = readAtOnce(this.#medium, this.#locator, this.#range)
      return bytes.byteLength > 0 ? { done: false, value: bytes } : { done: true, value: undefined }
    } catch (error) {
      throw await goneIfAbsent(this.#medium, error)
    }
  }
}

function readAtOnce(medium: Medium, locator: Locator, range: Range): Buffer {
  const { files, kept } = medium
  const there = kept.find(locator)
  const descriptor = there ?? openAtOnce(medium, locator)
  let isKept = there !== undefined
  try {
    const bytes = readFrom(files, descriptor, range)
    isKept ||= kept.keep(locator, descriptor)
    return bytes
  } catch (error) {
    if (isKept) kept.close(locator)
    throw error
  } finally {
    if (!isKept) files.closeSync(descriptor)
  }
}

function openAtOnce(medium: Medium, locator: Locator): number {
  const { files, root } = medium
  const name = parseLocator(locator, medium.algorithm)
  checkShardSync(medium, name.stage)
  const descriptor = files.openSync(bodyPath(root, name), READ)
  try {
    checkFile(files.fstatSync(descriptor))
    return descriptor
  } catch (error) {
    files.closeSync(descriptor)
    throw error
  }
}

function readFrom(files: Files, descriptor: number, { start, end }: Range): Buffer {
  const bytes = Buffer.allocUnsafeSlow(end - start)
  let filled = 0
  while (filled < bytes.length) {
    const count = files.readSync(descriptor, bytes, filled, bytes.length - filled, start + filled)
    if (count === 0) break
    filled += count
  }
  return filled === bytes.length ? bytes : bytes.subarray(0, filled)
}

/** BODY-READ-2: a missing file is a missing body only where the medium is known to be there. Answers what is to be thrown. */
async function goneIfAbsent(medium: Medium, error: unknown): Promise<unknown> {
  if (errno(error) !== 'ENOENT') return error
  await confirm(medium)
  return new EngineFault('gone', 'nothing lies under the locator', error)
}

/**
 * A file that is open while it is read, and lent between two reads: if somebody else needed the descriptor, it is opened
 * again. The bytes are the same then, for a sealed body never changes and its name is never used twice.
 */
class LentFile extends Loan {
  readonly #medium: Medium
  readonly #name: BodyName
  readonly #patience: { readonly signal: AbortSignal | undefined; readonly waitMs: number }
  #handle: FileHandle | undefined

  constructor(medium: Medium, name: BodyName, call: Call) {
    super()
    this.#medium = medium
    this.#name = name
    // The consumer may take its time between two pulls, so each wait has what the call had at its beginning.
    this.#patience = { signal: call.signal, waitMs: call.deadlineMs - performance.now() }
  }

  /** A new buffer of so many bytes from there on; fewer where the file ends. */
  async window(position: number, length: number): Promise<Buffer> {
    const handle = await this.#take()
    try {
      const window = Buffer.allocUnsafeSlow(length)
      let filled = 0
      while (filled < length) {
        const { bytesRead } = await handle.read(window, filled, length - filled, position + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return filled === length ? window : window.subarray(0, filled)
    } finally {
      this.#medium.descriptors.lend(this)
    }
  }

  async giveUp(): Promise<void> {
    await this.#handle?.close()
  }

  async close(): Promise<void> {
    const handle = this.#handle
    if (handle === undefined || !this.#medium.descriptors.reclaim(this)) return
    this.#handle = undefined
    try {
      await handle.close()
    } finally {
      this.#medium.descriptors.release('read')
    }
  }

  async #take(): Promise<FileHandle> {
    const { descriptors, files, root } = this.#medium
    if (this.#handle !== undefined && descriptors.reclaim(this)) return this.#handle
    await descriptors.acquire('read', this.#patience)
    try {
      await checkShard(this.#medium, this.#name.stage)
      this.#handle = await openFile(files, bodyPath(root, this.#name))
      return this.#handle
    } catch (error) {
      descriptors.release('read')
      throw await goneIfAbsent(this.#medium, error)
    }
  }
}

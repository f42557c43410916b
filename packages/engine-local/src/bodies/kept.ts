/**
 * Files of which small parts are read, kept open for a while: of a read of 64 KiB that opens and closes its file, that is most of the cost.
 *
 * What is kept is bounded (KEPT_MAX), is lent through `descriptors.ts` like every idle reader's (whoever needs a descriptor closes it), and
 * is closed by a drop of its body, with the engine, and when nobody read from it for a moment. A sealed body never changes and its name is
 * never used twice, so an open file cannot give the bytes of another body; one that was removed meanwhile, by whomever, has no name
 * left, and is asked for that before each use. Everything here is done in one go: nobody comes between a look and a read.
 */
import type { StageId } from '@alkblobs/core/engine'
import { type Descriptors, Loan } from '../descriptors.js'
import type { Files } from '../files.js'

/** Most files kept open: as many large bodies as are read in parts at the same time, on a machine that is busy with it. */
const KEPT_MAX = 16
/** A file that was not read from for one to two of these, in milliseconds, is closed: a disk may be full, a folder about to be unmounted. */
const IDLE_MS = 500

class KeptFile extends Loan {
  readonly descriptor: number
  readonly giveUp: () => Promise<void>
  isIdle = false
  /** Which use of any of the files was the last of this one. */
  lastUse = 0

  constructor(descriptor: number, giveUp: () => Promise<void>) {
    super()
    this.descriptor = descriptor
    this.giveUp = giveUp
  }
}

export class KeptFiles {
  readonly #files: Files
  readonly #descriptors: Descriptors
  readonly #kept = new Map<StageId, KeptFile>()
  #uses = 0
  #timer: NodeJS.Timeout | undefined

  constructor(files: Files, descriptors: Descriptors) {
    this.#files = files
    this.#descriptors = descriptors
  }

  /** Runs `read`, which does not wait, on the open file of a body. `open` opens it where none is kept; it is kept if there is room. */
  use<Result>(stage: StageId, open: () => number, read: (descriptor: number) => Result): Result {
    const there = this.#find(stage)
    const descriptor = there ?? open()
    let isKept = there !== undefined
    try {
      const result = read(descriptor)
      isKept ||= this.#keep(stage, descriptor)
      return result
    } catch (error) {
      if (isKept) this.close(stage)
      throw error
    } finally {
      if (!isKept) this.#files.closeSync(descriptor)
    }
  }

  /** Closes what is kept of a body that is about to go. */
  close(stage: StageId): void {
    const file = this.#kept.get(stage)
    if (file === undefined || !this.#descriptors.reclaim(file)) return
    this.#kept.delete(stage)
    try {
      this.#files.closeSync(file.descriptor)
    } finally {
      this.#descriptors.release('read')
    }
  }

  /** Ends the watch over idle files; they are lent, and closed with all that is. */
  end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** What is kept of a body that still has its name. */
  #find(stage: StageId): number | undefined {
    const file = this.#kept.get(stage)
    if (file === undefined) return undefined
    if (this.#files.fstatSync(file.descriptor).nlink === 0) {
      this.close(stage)
      return undefined
    }
    file.isIdle = false
    file.lastUse = ++this.#uses
    return file.descriptor
  }

  #keep(stage: StageId, descriptor: number): boolean {
    if (!this.#descriptors.tryAcquire('read')) return false
    if (this.#kept.size === KEPT_MAX) this.close(this.#leastRecentlyUsed())
    const file = new KeptFile(descriptor, async () => {
      this.#kept.delete(stage)
      this.#files.closeSync(descriptor)
    })
    file.lastUse = ++this.#uses
    this.#kept.set(stage, file)
    this.#descriptors.lend(file)
    this.#timer ??= setInterval(() => this.#closeIdle(), IDLE_MS).unref()
    return true
  }

  #leastRecentlyUsed(): StageId {
    const [first, ...others] = this.#kept
    const [stage] = others.reduce(
      (least, each) => (each[1].lastUse < least[1].lastUse ? each : least),
      first as [StageId, KeptFile]
    )
    return stage
  }

  #closeIdle(): void {
    for (const [stage, file] of this.#kept) {
      if (file.isIdle) this.close(stage)
      file.isIdle = true
    }
    if (this.#kept.size === 0) this.end()
  }
}

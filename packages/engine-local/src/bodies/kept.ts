/**
 * Files of which small parts are read, kept open for a while: of a read of 64 KiB that opens and closes its file, that is most of the cost.
 *
 * What is kept is bounded (KEPT_MAX), is lent through `descriptors.ts` like every idle reader's (whoever needs a descriptor closes it), and
 * is closed by a drop of its body, with the engine, and when nobody read from it for a moment. A sealed body never changes and its name is
 * never used twice, so an open file cannot give the bytes of another body; one that was removed meanwhile, by whomever, has no name
 * left, and is asked for that before its first use in each turn of the event loop: the answer takes a fifth of a read of 64 KiB. So a
 * body may be read that lost its name while this turn lasted, as if the read had come a moment before.
 */
import type { Locator, StageId } from '@alkblobs/core/engine'
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
  /** The turn in which it was last known to have its name. */
  namedInTurn: number

  constructor(descriptor: number, turn: number, giveUp: () => Promise<void>) {
    super()
    this.descriptor = descriptor
    this.namedInTurn = turn
    this.giveUp = giveUp
  }
}

export class KeptFiles {
  readonly #files: Files
  readonly #descriptors: Descriptors
  readonly #kept = new Map<Locator, KeptFile>()
  #uses = 0
  #turn = 0
  #isTurnCounted = false
  #timer: NodeJS.Timeout | undefined

  constructor(files: Files, descriptors: Descriptors) {
    this.#files = files
    this.#descriptors = descriptors
  }

  /** The open file of a body, if one is kept and the body still has its name. */
  find(locator: Locator): number | undefined {
    const file = this.#kept.get(locator)
    if (file === undefined) return undefined
    const turn = this.#countedTurn()
    if (file.namedInTurn !== turn) {
      if (this.#files.fstatSync(file.descriptor).nlink === 0) {
        this.#close(locator)
        return undefined
      }
      file.namedInTurn = turn
    }
    file.isIdle = false
    file.lastUse = ++this.#uses
    return file.descriptor
  }

  /** Keeps a file that was opened just now, if there is room; else it is the caller's to close. */
  keep(locator: Locator, descriptor: number): boolean {
    if (!this.#descriptors.tryAcquire('read')) return false
    if (this.#kept.size === KEPT_MAX) this.#close(this.#leastRecentlyUsed())
    const file = new KeptFile(descriptor, this.#countedTurn(), async () => {
      this.#kept.delete(locator)
      this.#files.closeSync(descriptor)
    })
    file.lastUse = ++this.#uses
    this.#kept.set(locator, file)
    this.#descriptors.lend(file)
    this.#timer ??= setInterval(() => this.#closeIdle(), IDLE_MS).unref()
    return true
  }

  /** Closes what is kept of a stage's body, which is about to go. */
  close(stage: StageId | Locator): void {
    for (const locator of this.#kept.keys()) if (locator.startsWith(stage)) this.#close(locator)
  }

  /** Ends the watch over idle files; they are lent, and closed with all that is. */
  end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #close(locator: Locator): void {
    const file = this.#kept.get(locator)
    if (file === undefined || !this.#descriptors.reclaim(file)) return
    this.#kept.delete(locator)
    try {
      this.#files.closeSync(file.descriptor)
    } catch {
      // As in `descriptors.ts`: it was only read from, and is closed. Whoever closes it here is about to do something else.
    } finally {
      this.#descriptors.release('read')
    }
  }

  /** This turn of the event loop, which ends with it. */
  #countedTurn(): number {
    if (this.#isTurnCounted) return this.#turn
    this.#isTurnCounted = true
    setImmediate(() => {
      this.#isTurnCounted = false
      this.#turn++
    })
    return this.#turn
  }

  #leastRecentlyUsed(): Locator {
    const [first, ...others] = this.#kept
    const [locator] = others.reduce(
      (least, each) => (each[1].lastUse < least[1].lastUse ? each : least),
      first as [Locator, KeptFile]
    )
    return locator
  }

  #closeIdle(): void {
    for (const [locator, file] of this.#kept) {
      if (file.isIdle) this.#close(locator)
      file.isIdle = true
    }
    if (this.#kept.size === 0) this.end()
  }
}

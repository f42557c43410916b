/**
 * One toxic in one direction of one connection: takes chunks in order, and passes them on as its kind decides. Between two stages there is
 * no buffer but the stage's own, so a slow reader slows its writer down, as on a real connection.
 */
import type { ActiveToxic } from './active-toxic.js'
import { BEHAVIOURS, type Behaviour } from './behaviours.js'

/** The end of a direction: its writer has said all. */
export const END = Symbol('end')
export type Item = Buffer | typeof END

/** How much a stage may hold: a delay holds what is under way, everything else works on one chunk. */
const HELD_MAX = 1_024

/** What a stage can do to the connection that it stands in. */
export interface Surroundings {
  /** Passes on what comes out; resolves when there is room for more. */
  out(item: Item): Promise<void>
  /** Whether a side of this connection that is closed is reset. */
  readonly resets: boolean
}

interface Held {
  readonly item: Item
  readonly arrivedMs: number
}

export class Stage {
  readonly toxic: ActiveToxic
  readonly #around: Surroundings
  readonly #behaviour: Behaviour
  /** Drawn once for each connection, not for each chunk. */
  #isStruck: boolean
  readonly #held: Held[] = []
  readonly #roomWaiters: (() => void)[] = []
  #wake: (() => void) | undefined
  #isRunning = false
  #isRemoved = false
  #isClosed = false
  #drained: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(toxic: ActiveToxic, around: Surroundings) {
    this.toxic = toxic
    this.#around = around
    toxic.counters.links += 1
    this.#behaviour = BEHAVIOURS[toxic.type](toxic)
    this.#isStruck = this.#draw()
    this.#begin()
  }

  /** The toxic has changed: it is drawn anew whether it acts here, and whoever waits goes on. */
  update(): void {
    this.#isStruck = this.#draw()
    clearTimeout(this.#timer)
    this.#begin()
    this.#wake?.()
  }

  /** Takes an item; resolves when it takes another. */
  async push(item: Item): Promise<void> {
    if (this.#isClosed) return
    this.#held.push({ item, arrivedMs: performance.now() })
    if (!this.#isRunning) void this.#run()
    const heldMax = this.#behaviour.buffers === true ? HELD_MAX : 1
    while (this.#held.length >= heldMax && !this.#isClosed) {
      await new Promise<void>(resolve => this.#roomWaiters.push(resolve))
    }
  }

  /** The toxic is gone: what is held passes at once. Resolves when nothing is held any more. */
  async remove(): Promise<void> {
    this.#isRemoved = true
    clearTimeout(this.#timer)
    this.#wake?.()
    // Toxiproxy closes those too on which the toxic was drawn not to act.
    if (this.#behaviour.closesWhenRemoved === true) void this.close()
    if (!this.#isRunning) return
    await new Promise<void>(resolve => {
      this.#drained = resolve
    })
  }

  /** The connection is over: nothing passes any more. */
  destroy(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#held.length = 0
    this.#wake?.()
    this.#makeRoom()
    this.#drained?.()
  }

  /** Closes the connection when so much time has passed, unless it is said again before. */
  closeAfter(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.close(), ms)
  }

  /** Waits, but not for a toxic that is removed, nor for a connection that is over. Says whether to go on. */
  async sleep(ms: number): Promise<boolean> {
    if (this.#isRemoved || this.#isClosed) return false
    await new Promise<void>(resolve => {
      const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
    return !this.#isRemoved && !this.#isClosed
  }

  out(item: Item): Promise<void> {
    return this.#isClosed ? Promise.resolve() : this.#around.out(item)
  }

  drop(item: Item): void {
    if (item !== END) this.toxic.counters.bytesDropped += item.length
  }

  /** Nothing passes any more but the end of this direction, after what has passed: the other side is closed by it. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.destroy()
    this.toxic.counters.closes += 1
    if (this.#around.resets) this.toxic.counters.resets += 1
    await this.#around.out(END)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    for (let held = this.#held[0]; held !== undefined && !this.#isClosed; held = this.#held[0]) {
      await this.#handle(held)
      this.#held.shift()
      this.#makeRoom()
    }
    this.#isRunning = false
    this.#drained?.()
  }

  async #handle({ item, arrivedMs }: Held): Promise<void> {
    const { toxic } = this
    if (this.#isRemoved) return await this.out(item)
    if (item === END) return await this.#handleBy(item, arrivedMs)
    // Until its trigger, a toxic is not there.
    const idle = toxic.idleBytes(item)
    if (idle > 0) await this.out(item.subarray(0, idle))
    if (idle === item.length) return
    toxic.counters.chunks += 1
    await this.#handleBy(item.subarray(idle), arrivedMs)
  }

  #handleBy(item: Item, arrivedMs: number): Promise<void> {
    return this.#isStruck ? this.#behaviour.handle(this, item, arrivedMs) : this.out(item)
  }

  #begin(): void {
    if (this.#isStruck && !this.toxic.isWaiting) this.#behaviour.begin?.(this)
  }

  #draw(): boolean {
    return Math.random() < this.toxic.toxicity
  }

  #makeRoom(): void {
    for (const resolve of this.#roomWaiters.splice(0)) resolve()
  }
}

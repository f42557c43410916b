/** What each kind of toxic does with an item. `handle` resolves when the next one may come. */
import type { Toxic, ToxicType } from '../transport/toxics.js'
import type { Item, Stage } from './stage.js'

export interface Behaviour {
  /** Whether further items are taken while one is still under way. */
  readonly buffers?: boolean
  /** Whether the connection cannot go on without the toxic, because bytes were lost. */
  readonly closesWhenRemoved?: boolean
  handle(stage: Stage, item: Item, arrivedMs: number): Promise<void>
  /** Called when the toxic begins to act on a connection, whether something is said there or not. */
  begin?(stage: Stage): void
}

/** Attributes are looked up for each item: they may be changed meanwhile. */
type Make = (toxic: Pick<Toxic, 'attributes'>) => Behaviour
const isEnd = (item: Item): item is Exclude<Item, Buffer> => !Buffer.isBuffer(item)

/** Attributes are complete (`ATTRIBUTES`), so what is asked for is there. */
const of = ({ attributes }: Pick<Toxic, 'attributes'>, name: string) => attributes[name] ?? 0

const latency: Make = toxic => ({
  buffers: true,
  async handle(stage, item, arrivedMs) {
    const jitter = of(toxic, 'jitter')
    const spread = jitter === 0 ? 0 : Math.floor((Math.random() * 2 - 1) * jitter)
    const leftMs = arrivedMs + of(toxic, 'latency') + spread - performance.now()
    if (!isEnd(item) && leftMs > 0) await stage.sleep(leftMs)
    await stage.out(item)
  }
})

/** Pieces of a tenth of a second's worth, a tenth of a second apart. */
const bandwidth: Make = toxic => ({
  async handle(stage, item) {
    if (isEnd(item)) return await stage.out(item)
    const rate = of(toxic, 'rate')
    const piece = rate * 100
    let rest = item
    while (rest.length > 0 && !stage.isClosed) {
      const isWhole = piece > 0 && rest.length <= piece
      const waitMs = piece === 0 ? Number.POSITIVE_INFINITY : isWhole ? rest.length / rate : 100
      if (!(await stage.sleep(waitMs))) break
      await stage.out(rest.subarray(0, piece))
      rest = rest.subarray(piece)
    }
    if (rest.length > 0) await stage.out(rest)
  }
})

const slowClose: Make = toxic => ({
  async handle(stage, item) {
    if (isEnd(item)) await stage.sleep(of(toxic, 'delay'))
    await stage.out(item)
  }
})

/** The silence is counted from the toxic's first moment, and anew from every chunk, so a busy connection never times out. */
const timeout: Make = toxic => {
  const wait = (stage: Stage) => {
    const ms = of(toxic, 'timeout')
    if (ms > 0) stage.closeAfter(ms)
  }
  return {
    closesWhenRemoved: true,
    begin: wait,
    async handle(stage, item) {
      // What is said is dropped; that a side has gone is not.
      if (isEnd(item)) return await stage.out(item)
      stage.drop(item)
      wait(stage)
    }
  }
}

const resetPeer: Make = toxic => ({
  async handle(stage, item) {
    stage.drop(item)
    const ms = of(toxic, 'timeout')
    if (ms > 0) await new Promise(resolve => setTimeout(resolve, ms))
    await stage.close()
  }
})

const slicer: Make = toxic => {
  /** Halves, halved again until they are small enough; where exactly is a matter of luck. */
  const slices = (bytes: Buffer): Buffer[] => {
    const size = of(toxic, 'average_size')
    const variation = of(toxic, 'size_variation')
    if (bytes.length - size <= variation || bytes.length < 2 || size < 1) return [bytes]
    const chance = variation === 0 ? 0 : Math.floor(Math.random() * 2 * variation) - variation
    const middle = Math.min(bytes.length - 1, Math.max(1, Math.floor(bytes.length / 2) + chance))
    return [...slices(bytes.subarray(0, middle)), ...slices(bytes.subarray(middle))]
  }
  return {
    async handle(stage, item) {
      if (isEnd(item)) return await stage.out(item)
      for (const slice of slices(item)) {
        await stage.out(slice)
        const microseconds = of(toxic, 'delay')
        if (microseconds > 0) await stage.sleep(microseconds / 1_000)
      }
    }
  }
}

const limitData: Make = toxic => {
  let seen = 0
  return {
    async handle(stage, item) {
      if (isEnd(item)) return await stage.out(item)
      const passed = item.subarray(0, Math.max(0, of(toxic, 'bytes') - seen))
      seen += passed.length
      if (passed.length > 0) await stage.out(passed)
      if (seen < of(toxic, 'bytes')) return
      stage.drop(item.subarray(passed.length))
      await stage.close()
    }
  }
}

export const BEHAVIOURS: Readonly<Record<ToxicType, Make>> = {
  latency,
  bandwidth,
  slow_close: slowClose,
  timeout,
  reset_peer: resetPeer,
  slicer,
  limit_data: limitData
}

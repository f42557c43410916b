/** A toxic of one proxy: what it is, what it has done, and until when it waits. */
import type { Stream, Toxic, ToxicCounters, ToxicType, Trigger } from '../transport/toxics.js'

/** A message of the server: a letter, and a length that counts itself and not the letter. */
const HEADER_LENGTH = 5

export class ActiveToxic implements Toxic {
  readonly name: string
  readonly type: ToxicType
  readonly stream: Stream
  readonly counters: { -readonly [K in keyof ToxicCounters]: ToxicCounters[K] } = {
    links: 0,
    chunks: 0,
    bytesDropped: 0,
    closes: 0,
    resets: 0
  }
  toxicity: number
  attributes: Readonly<Record<string, number>>
  #bytesUntil: number
  #message: string | undefined
  /** Bytes of the present message that have not yet come. */
  #inMessage = 0
  #header = Buffer.alloc(0)

  constructor(toxic: Toxic, trigger: Trigger = {}) {
    this.name = toxic.name
    this.type = toxic.type
    this.stream = toxic.stream
    this.toxicity = toxic.toxicity
    this.attributes = toxic.attributes
    this.#bytesUntil = trigger.bytes ?? 0
    this.#message = trigger.message
  }

  /** Whether the trigger has not come yet. */
  get isWaiting(): boolean {
    return this.#bytesUntil > 0 || this.#message !== undefined
  }

  /** How many of these bytes still belong to the time before the trigger. */
  idleBytes(chunk: Buffer): number {
    if (this.#bytesUntil > 0) {
      const idle = Math.min(this.#bytesUntil, chunk.length)
      this.#bytesUntil -= idle
      return idle
    }
    return this.#message === undefined ? 0 : this.#untilMessage(chunk, this.#message)
  }

  toJSON(): Toxic {
    const { name, type, stream, toxicity, attributes } = this
    return { name, type, stream, toxicity, attributes }
  }

  #untilMessage(chunk: Buffer, wanted: string): number {
    let at = 0
    while (at < chunk.length) {
      if (this.#inMessage > 0) {
        const passed = Math.min(this.#inMessage, chunk.length - at)
        this.#inMessage -= passed
        at += passed
        continue
      }
      if (this.#header.length === 0 && String.fromCharCode(chunk[at] ?? 0) === wanted) {
        this.#message = undefined
        return at
      }
      const part = chunk.subarray(at, at + HEADER_LENGTH - this.#header.length)
      this.#header = Buffer.concat([this.#header, part])
      at += part.length
      if (this.#header.length < HEADER_LENGTH) continue
      this.#inMessage = Math.max(0, this.#header.readInt32BE(1) - 4)
      this.#header = Buffer.alloc(0)
    }
    return chunk.length
  }
}

/** Sources that go wrong, each in one way, and tell how they were treated. */
import { Readable } from 'node:stream'
import type { BlobContent } from '@alkblobs/core'

/** What a producer saw: how often it was asked for a chunk, and how often it was over: by itself, or because it was told. */
export interface Producer {
  readonly content: BlobContent
  pulls(): number
  /** How often it ended, failed, or heard `return`, `cancel` or `destroy`. */
  endings(): number
}

/** When a producer stops being well-behaved, and how: after the last piece it calls `atEnd`. */
export interface Script {
  readonly bytes: Uint8Array
  readonly chunkLength: number
  /** Runs after the last chunk, instead of the end: throws, waits, aborts, or does nothing (the source ends). */
  readonly atEnd: () => unknown
}

function* pieces({ bytes, chunkLength }: Script): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += chunkLength)
    yield bytes.slice(at, at + chunkLength) as Uint8Array<ArrayBuffer>
}

function iterable(script: Script): Producer {
  let pulls = 0
  let endings = 0
  const iterator = pieces(script)
  const end = () => {
    endings += 1
  }
  // Written out, not a generator: a generator that waits inside itself, or was never started, cannot hear that it is over.
  const content: AsyncIterableIterator<Uint8Array<ArrayBuffer>> = {
    [Symbol.asyncIterator]: () => content,
    async next() {
      pulls += 1
      const step = iterator.next()
      if (!step.done) return step
      try {
        await script.atEnd()
      } catch (error) {
        end()
        throw error
      }
      end()
      return { done: true, value: undefined }
    },
    async return() {
      end()
      return { done: true, value: undefined }
    }
  }
  return { content, pulls: () => pulls, endings: () => endings }
}

function web(script: Script): Producer {
  let pulls = 0
  let endings = 0
  const iterator = pieces(script)
  const content = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        pulls += 1
        const step = iterator.next()
        if (!step.done) return controller.enqueue(step.value)
        await script.atEnd()
        endings += 1
        controller.close()
      },
      cancel() {
        endings += 1
      }
    },
    { highWaterMark: 0 }
  )
  return { content, pulls: () => pulls, endings: () => endings }
}

function readable(script: Script): Producer {
  let pulls = 0
  let endings = 0
  const iterator = pieces(script)
  const content = new Readable({
    highWaterMark: 1,
    read() {
      pulls += 1
      const step = iterator.next()
      if (!step.done) {
        this.push(step.value)
        return
      }
      Promise.resolve()
        .then(script.atEnd)
        .then(
          () => {
            if (!this.destroyed) this.push(null)
          },
          (error: Error) => this.destroy(error)
        )
    },
    destroy(error, done) {
      endings += 1
      done(error)
    }
  })
  return { content, pulls: () => pulls, endings: () => endings }
}

/** The three kinds of producer that can be told to stop, each following a script. */
export const PRODUCERS: Readonly<Record<string, (script: Script) => Producer>> = {
  'an async iterable': iterable,
  'a web stream': web,
  'a Readable': readable
}

/** An `atEnd` that fails with this error. */
export const throwing = (error: Error) => () => {
  throw error
}

/** An `atEnd` that tells somebody and never comes back. */
export const stallingAfter = (tell: () => unknown) => () => {
  tell()
  return stalling()
}

/** An `atEnd` that never comes back, as a stalled upload. */
export const stalling = () => new Promise<never>(() => {})

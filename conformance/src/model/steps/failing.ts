/** Puts that fail, by their producer, their promise or their medium: nothing of them is left, and nothing else is touched. */
import fc from 'fast-check'
import { refuses } from '../../expect.js'
import { CHUNKINGS, type Chunking } from '../../sources.js'
import type { Operation } from '../../tap.js'
import type { ModelContent } from '../contents.js'
import { contentNumbers, stepKind, stores } from '../step.js'

const ragged = (bytes: Uint8Array) => (CHUNKINGS['ragged chunks'] as Chunking)(bytes)

async function* endingIn(bytes: Uint8Array, end: () => void): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield* ragged(bytes)
  end()
}

/** `throws`: the producer fails behind the last byte. `short`, `long`: the length it declared is another. `aborts`: nobody waits. */
type Failure = 'throws' | 'short' | 'long' | 'aborts' | 'limit'

/** A put that ends before its end. */
export const failingPut = stepKind<{ by: number; content: number; how: Failure }>({
  name: 'failingPut',
  args: contents =>
    fc.record({
      by: stores,
      content: contentNumbers(contents),
      how: fc.constantFrom<Failure>('throws', 'short', 'long', 'aborts', 'limit')
    }),
  toleratesReleases: true,
  canRun(world, { by, content, how }) {
    const length = world.pool.lengthOf(content)
    const isCut = how === 'long' || how === 'limit'
    return world.pool.accepts(world.at(by).holder, length + 1) && !(isCut && length === 0)
  },
  async run(world, { by, content, how }) {
    const { store } = world.at(by)
    const { bytes } = world.contents[content] as ModelContent
    const failure = new Error('the producer has failed')
    const controller = new AbortController()
    const length = { short: bytes.length + 1, long: bytes.length - 1 }
    const options = {
      signal: controller.signal,
      ...(how === 'short' || how === 'long' ? { length: length[how] } : {}),
      ...(how === 'limit' ? { maxLength: bytes.length - 1 } : {})
    }
    const source = endingIn(bytes, () => {
      if (how === 'throws') throw failure
      if (how === 'aborts') controller.abort(failure)
    })
    const code = how === 'limit' ? 'ERR_BLOB_TOO_LARGE' : 'ERR_BLOB_LENGTH_MISMATCH'
    const isOwn = how === 'throws' || how === 'aborts'
    await refuses(
      () => store.put(source, options),
      isOwn ? error => error === failure : code,
      `a put that ${how} fails`
    )
    world.pool.exists = true
  }
})

/** Steps of a put at which the medium refuses, before anything of the step is done. */
const OPERATIONS: readonly Operation[] = ['stage', 'create', 'staged', 'publish']

/** The medium fails once, under way of a put. */
export const brokenPut = stepKind<{ by: number; content: number; operation: Operation }>({
  name: 'brokenPut',
  args: contents =>
    fc.record({ by: stores, content: contentNumbers(contents), operation: fc.constantFrom(...OPERATIONS) }),
  toleratesReleases: true,
  canRun(world, { by, content, operation }) {
    const { holder } = world.at(by)
    const length = world.pool.lengthOf(content)
    const isLarge = world.pool.hasBodies && length > holder.threshold
    return world.pool.exists && world.pool.accepts(holder, length) && (isLarge || operation === 'publish')
  },
  async run(world, { by, content, operation }) {
    const { store, switches } = world.at(by)
    const { bytes } = world.contents[content] as ModelContent
    switches.failsOnce = operation
    // A stream: bytes at hand would be found first, by a publication without them.
    const source = endingIn(bytes, () => {})
    await refuses(() => store.put(source), 'ERR_BLOB_ENGINE', `a put whose ${operation} fails`)
    switches.failsOnce = undefined
  }
})

/** Steps that store: `put` by every path and source, and writers that are left open between other steps. */
import type { BlobContent, PutOptions, PutReceipt, Store } from '@alkblobs/core'
import fc from 'fast-check'
import { equal, refuses } from '../../expect.js'
import { CHUNKINGS, type Chunking, iterate, sourcesOf } from '../../sources.js'
import type { ModelContent } from '../contents.js'
import { STAGE_TTL_MS, type WriterModel } from '../pool.js'
import { contentNumbers, rarely, stepKind, stores } from '../step.js'
import type { OpenStore, World, WriterHeld } from '../world.js'

/** `plain`: any source as it is; `declared`: a stream with its length; `writer`: pushed. */
export type PutForm = 'plain' | 'declared' | 'writer'

export interface PutArgs {
  readonly by: number
  readonly content: number
  readonly form: PutForm
  /** Which of the sources that carry these bytes. */
  readonly source: number
  readonly pin: boolean
  readonly verify: boolean
  /** Whether the put names the key it expects: the right one, or another. */
  readonly expect: 'nothing' | 'key' | 'other'
}

const ragged = (bytes: Uint8Array) => (CHUNKINGS['ragged chunks'] as Chunking)(bytes)

function sourceOf({ bytes, text }: ModelContent, number: number): BlobContent {
  const makers = sourcesOf(bytes).map(({ make }) => make)
  if (text !== undefined) makers.push(() => text)
  return (makers[number % makers.length] as () => BlobContent)()
}

async function putBy(store: Store, content: ModelContent, args: PutArgs, options: PutOptions): Promise<PutReceipt> {
  if (args.form === 'plain') return await store.put(sourceOf(content, args.source), options)
  const { bytes } = content
  if (args.form === 'declared') return await store.put(iterate(ragged(bytes)), { ...options, length: bytes.length })
  const writer = store.writer(options)
  for (const chunk of ragged(bytes)) await writer.write(chunk)
  return await writer.commit()
}

/** Whether the bytes lie in memory, so that too many of them are refused before the pool is made. */
function areAtHand(world: World, { form, content, source }: PutArgs): boolean {
  if (form !== 'plain') return false
  const given = sourceOf(world.contents[content] as ModelContent, source)
  return typeof given === 'string' || ArrayBuffer.isView(given) || given instanceof ArrayBuffer
}

/** The code a put is refused with, in the order in which a store looks; `undefined`: it is not refused. */
function refusalOf(world: World, { holder }: OpenStore, args: PutArgs): string | undefined {
  const { pool } = world
  const isTooLong = !pool.accepts(holder, pool.lengthOf(args.content))
  if (isTooLong && areAtHand(world, args)) return 'ERR_BLOB_TOO_LARGE'
  pool.exists = true
  if (!args.pin && (pool.form === 'inline' || pool.windowDelayMs === 0)) return 'ERR_BLOB_PIN_REQUIRED'
  if (isTooLong) return 'ERR_BLOB_TOO_LARGE'
  return args.expect === 'other' ? 'ERR_BLOB_KEY_MISMATCH' : undefined
}

function optionsOf(world: World, { pin, verify, content, expect }: PutArgs): PutOptions {
  if (expect === 'nothing') return { pin, verify }
  return { pin, verify, expect: world.keyOf(expect === 'key' ? content : (content + 1) % world.contents.length) }
}

export const put = stepKind<PutArgs>({
  name: 'put',
  args: contents =>
    fc.record({
      by: stores,
      content: contentNumbers(contents),
      form: fc.constantFrom<PutForm>('plain', 'plain', 'declared', 'writer'),
      source: fc.nat({ max: 16 }),
      pin: rarely(false, true),
      verify: rarely(true, false),
      expect: rarely<PutArgs['expect']>('other', 'nothing', 'key')
    }),
  toleratesReleases: true,
  async run(world, args) {
    const at = world.at(args.by)
    const { pool } = world
    const { pin, verify, content } = args
    const attempt = () => putBy(at.store, world.contents[content] as ModelContent, args, optionsOf(world, args))
    const refusal = refusalOf(world, at, args)
    if (refusal !== undefined) {
      await refuses(attempt, refusal, 'a put that breaks a promise is refused')
      return
    }
    const receipt = await attempt()
    const created = pool.publish(content, at.holder, { pin, verify })
    const { key, length } = receipt
    const expected = {
      key: world.keyOf(content),
      length: pool.lengthOf(content),
      created,
      held: pin ? true : undefined
    }
    equal({ key, length, created: receipt.created, held: receipt.pin?.held }, expected, 'the receipt of a put')
    if (pin) world.hold(content, at.holder, receipt)
  }
})

/** Opens a writer and gives it everything, but does not commit. */
export const write = stepKind<{ by: number; content: number }>({
  name: 'write',
  args: contents => fc.record({ by: stores, content: contentNumbers(contents) }),
  toleratesReleases: true,
  canRun: (world, { by, content }) => world.pool.accepts(world.at(by).holder, world.pool.lengthOf(content)),
  async run(world, { by, content }) {
    const at = world.at(by)
    const { pool } = world
    const writer = at.store.writer()
    // The first write makes the pool, whatever it brings.
    await writer.write(new Uint8Array(0))
    for (const chunk of ragged((world.contents[content] as ModelContent).bytes)) await writer.write(chunk)
    pool.exists = true
    const isSpilled = pool.hasBodies && pool.lengthOf(content) > at.holder.threshold
    const model: WriterModel = {
      content,
      holder: at.holder,
      stageExpiresAtMs: isSpilled ? pool.nowMs + STAGE_TTL_MS : undefined,
      isSpilled,
      isOver: false
    }
    pool.writers.push(model)
    world.writers.push({ model, at, writer })
  }
})

const underWay = (world: World) => world.writers.filter(({ model }) => !model.isOver)
const chosen = (world: World, nth: number) => {
  const all = underWay(world)
  return all[nth % all.length] as WriterHeld
}

export const commit = stepKind<{ nth: number }>({
  name: 'commit',
  args: () => fc.record({ nth: fc.nat({ max: 3 }) }),
  toleratesReleases: true,
  canRun: world => underWay(world).length > 0,
  async run(world, { nth }) {
    const { model, at, writer } = chosen(world, nth)
    const { pool } = world
    const { content, stageExpiresAtMs, isSpilled } = model
    model.isOver = true
    model.stageExpiresAtMs = undefined
    if (isSpilled && (stageExpiresAtMs === undefined || stageExpiresAtMs <= pool.nowMs)) {
      await refuses(() => writer.commit(), 'ERR_BLOB_STAGE_LOST', 'a writer whose stage has expired cannot publish')
      return
    }
    const receipt = await writer.commit()
    const created = pool.publish(content, at.holder, { pin: true, verify: false })
    const { key, length } = receipt
    const expected = { key: world.keyOf(content), length: pool.lengthOf(content), created }
    equal({ key, length, created: receipt.created }, expected, 'the receipt of a writer')
    world.hold(content, at.holder, receipt)
  }
})

export const discard = stepKind<{ nth: number }>({
  name: 'discard',
  args: () => fc.record({ nth: fc.nat({ max: 3 }) }),
  toleratesReleases: true,
  canRun: world => underWay(world).length > 0,
  async run(world, { nth }) {
    const { model, writer } = chosen(world, nth)
    model.isOver = true
    model.stageExpiresAtMs = undefined
    await writer.discard()
  }
})

/** Steps on a body store: bodies begun, written, sealed, discarded, read in ranges, dropped and found again. */
import { createHash } from 'node:crypto'
import {
  type BodyStore,
  type BodyWriter,
  type Call,
  formatKey,
  type Locator,
  type PoolId,
  type StageId,
  WINDOW_LENGTH
} from '@alkblobs/core/engine'
import fc from 'fast-check'
import { bytesOf } from '../../content.js'
import { equal, holds, refuses, sameBytes, settled } from '../../expect.js'

/** A virgin medium of bodies, opened once. */
export interface BodiesUnderTest {
  readonly bodies: BodyStore
  /** Closes it and removes the medium. */
  close(): Promise<void>
}

const CALL_LIMIT_MS = 30_000
const call = (): Call => ({ deadlineMs: performance.now() + CALL_LIMIT_MS })

interface Half {
  readonly writer: BodyWriter
  readonly parts: Uint8Array[]
  isOver: boolean
}

/** What the store holds, told from what was done to it. */
export class BodiesWorld {
  readonly bodies: BodyStore
  readonly halves = new Map<StageId, Half>()
  readonly sealed = new Map<StageId, { readonly locator: Locator; readonly bytes: Uint8Array }>()
  /** Every name there ever was. */
  readonly names: (Locator | StageId)[] = []
  #stages = 0

  private constructor(bodies: BodyStore) {
    this.bodies = bodies
  }

  static async begin({ bodies }: BodiesUnderTest): Promise<BodiesWorld> {
    const claim = { poolId: 'pool' as PoolId, mode: 'shared' } as const
    equal(await bodies.claimed(call()), undefined, 'a virgin medium is nobody’s')
    equal(await bodies.claim(claim, call()), claim, 'the first claim is in force')
    const other = { ...claim, poolId: 'other' as PoolId }
    equal(await bodies.claim(other, call()), claim, 'a later claim finds the first in force')
    equal(await bodies.claim(claim, call()), claim, 'a claim may be made again')
    return new BodiesWorld(bodies)
  }

  newStage(): StageId {
    this.#stages++
    // Spread over the names, as random ones are.
    return createHash('md5').update(`${this.#stages}`).digest('hex') as StageId
  }

  /** Ends every body that is being written; a writer that is not told keeps what it has open. */
  async discardAll(): Promise<void> {
    for (const [stage, half] of this.open()) {
      half.isOver = true
      this.halves.delete(stage)
      await half.writer.discard()
    }
  }

  open(): [StageId, Half][] {
    return [...this.halves].filter(([, { isOver }]) => !isOver)
  }
}

export interface BodyStep {
  canRun(world: BodiesWorld): boolean
  run(world: BodiesWorld): Promise<void>
  toString(): string
}

function stepOf<Args extends object>(
  name: string,
  args: fc.Arbitrary<Args>,
  run: (world: BodiesWorld, args: Args) => Promise<void>,
  canRun: (world: BodiesWorld) => boolean = () => true
): fc.Arbitrary<BodyStep> {
  return args.map(given => ({
    canRun,
    run: world => run(world, given),
    toString: () => `${name}(${JSON.stringify(given)})`
  }))
}

const nth = fc.nat({ max: 7 })
const pick = <T>(all: readonly T[], n: number): T => all[n % all.length] as T

const create = stepOf('create', fc.record({ hint: fc.constantFrom(undefined, 0, 3000) }), async (world, { hint }) => {
  const stage = world.newStage()
  const writer = await world.bodies.create(stage, hint === undefined ? {} : { length: hint }, call())
  world.halves.set(stage, { writer, parts: [], isOver: false })
  world.names.push(stage)
  // Refused at once, or a body of its own that is taken back: the first is neither used nor harmed.
  const again = await settled(world.bodies.create(stage, {}, call()))
  if ('value' in again) await again.value.discard()
})

const write = stepOf(
  'write',
  fc.record({ nth, length: fc.constantFrom(1, 700, 2048, 3000, 70_000, WINDOW_LENGTH), seed: fc.nat({ max: 9 }) }),
  async (world, args) => {
    const [, half] = pick(world.open(), args.nth)
    const part = bytesOf(args.length, args.seed + 1)
    await half.writer.write(part)
    half.parts.push(part.slice())
    // The chunk is the caller's again.
    part.fill(0)
  },
  world => world.open().length > 0
)

const seal = stepOf(
  'seal',
  fc.record({ nth }),
  async (world, args) => {
    const [stage, half] = pick(world.open(), args.nth)
    const bytes = Buffer.concat(half.parts)
    const key = formatKey('sha256', createHash('sha256').update(bytes).digest())
    const locator = await half.writer.seal(key)
    holds(!world.names.includes(locator), 'a locator is never used twice')
    half.isOver = true
    world.halves.delete(stage)
    world.sealed.set(stage, { locator, bytes })
    world.names.push(locator)
  },
  world => world.open().some(([, { parts }]) => parts.length > 0)
)

const discard = stepOf(
  'discard',
  fc.record({ nth, twice: fc.boolean() }),
  async (world, args) => {
    const [stage, half] = pick(world.open(), args.nth)
    await half.writer.discard()
    if (args.twice) await half.writer.discard()
    half.isOver = true
    world.halves.delete(stage)
  },
  world => world.open().length > 0
)

const edge = fc.oneof(
  fc.nat({ max: 6000 }),
  fc.constantFrom(WINDOW_LENGTH - 1, WINDOW_LENGTH, WINDOW_LENGTH + 1, 2 ** 40)
)

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) {
    holds(chunk.length <= WINDOW_LENGTH, 'a chunk is at most a window')
    parts.push(new Uint8Array(chunk))
    // The chunk is the consumer's: what is written into it is nobody else's business.
    chunk.fill(0xaa)
  }
  return Buffer.concat(parts)
}

const read = stepOf(
  'read',
  fc.record({ nth, one: edge, other: edge }),
  async ({ bodies, sealed }, args) => {
    const { locator, bytes } = pick([...sealed.values()], args.nth)
    const [start, end] = args.one < args.other ? [args.one, args.other] : [args.other, args.one + 1]
    sameBytes(
      await readAll(bodies.read(locator, { start, end }, call())),
      bytes.subarray(start, end),
      'a range of a body'
    )
    equal(await bodies.length(locator, call()), bytes.length, 'the length of a body')
  },
  ({ sealed }) => sealed.size > 0
)

/** Drops names that are there, half written, gone, or were never heard of. */
const drop = stepOf(
  'drop',
  fc.record({ nths: fc.uniqueArray(fc.nat({ max: 30 }), { minLength: 1, maxLength: 3 }), isStranger: fc.boolean() }),
  async (world, args) => {
    const stranger = world.newStage()
    const chosen = [...args.nths.map(n => pick(world.names, n)), ...(args.isStranger ? [stranger] : [])]
    const what = [...new Set(chosen)]
    const results = await world.bodies.drop(what, call())
    // What is being written may hold on to its stage (a transaction that is open); its own end takes it away.
    const isHalf = (name: string) => [...world.halves.keys()].some(stage => stage === name)
    equal(
      results.map(result => (isHalf(result.what) ? { what: result.what } : result)),
      what.map(name => ({ what: name })),
      'drop answers each name, and gone already is done'
    )
    for (const [stage, { locator }] of [...world.sealed])
      if (what.includes(locator) || what.includes(stage)) world.sealed.delete(stage)
    for (const [stage, half] of [...world.halves]) {
      if (!what.includes(stage)) continue
      half.isOver = true
      world.halves.delete(stage)
      await half.writer.discard()
    }
  },
  ({ names }) => names.length > 0
)

const gone = stepOf(
  'gone',
  fc.record({ nth: fc.nat({ max: 30 }) }),
  async ({ bodies, names, sealed }, args) => {
    const name = pick(names, args.nth)
    if ([...sealed.values()].some(({ locator }) => locator === name) || name.length === 32) return
    equal(await bodies.length(name as Locator, call()), undefined, 'a body that was dropped has no length')
    await refuses(
      () => readAll(bodies.read(name as Locator, { start: 0, end: 9 }, call())),
      () => true,
      'nor bytes'
    )
  },
  ({ names }) => names.length > 0
)

/** Every sealed body is found, page by page, each once, whole, with its key and length; halves may be. */
export async function expectScan({ bodies, sealed, halves }: BodiesWorld, limit: number): Promise<void> {
  const found: string[] = []
  let after: string | undefined
  do {
    const page = await bodies.scan(after, limit, call())
    holds(page.found.length <= limit, 'a page of bodies is no longer than asked for')
    for (const body of page.found) {
      holds(body.sealed !== undefined || halves.has(body.stage), 'a half is one that is being written')
      if (body.sealed !== undefined)
        found.push(`${body.stage} ${body.sealed.locator} ${body.sealed.length} ${body.sealed.whole}`)
    }
    after = page.next
  } while (after !== undefined)
  const expected = [...sealed].map(([stage, { locator, bytes }]) => `${stage} ${locator} ${bytes.length} true`)
  equal(found.sort(), expected.sort(), 'scan finds every sealed body once')
}

const scan = stepOf('scan', fc.record({ limit: fc.integer({ min: 1, max: 4 }) }), (world, { limit }) =>
  expectScan(world, limit)
)

/** Any step on a body store. */
export const anyBodyStep: fc.Arbitrary<BodyStep> = fc.oneof(
  { weight: 4, arbitrary: create },
  { weight: 6, arbitrary: write },
  { weight: 4, arbitrary: seal },
  { weight: 1, arbitrary: discard },
  { weight: 4, arbitrary: read },
  { weight: 2, arbitrary: drop },
  { weight: 1, arbitrary: gone },
  { weight: 2, arbitrary: scan }
)

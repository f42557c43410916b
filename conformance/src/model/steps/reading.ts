/** Steps that look: they change nothing, whatever they find. */
import type { StoredBlob } from '@alkblobs/core'
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import fc from 'fast-check'
import { becomes, equal, present, refuses, sameBytes } from '../../expect.js'
import { oracleOf } from '../../factory.js'
import type { ModelContent } from '../contents.js'
import { contentNumbers, stepKind, stores } from '../step.js'
import type { World } from '../world.js'

const bytesIn = (world: World, content: number) => (world.contents[content] as ModelContent).bytes

async function streamed(blob: StoredBlob): Promise<Uint8Array> {
  return new Uint8Array(await new Response(blob.stream()).arrayBuffer())
}

async function iterated(blob: StoredBlob): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of blob) {
    chunks.push(new Uint8Array(chunk))
    chunk.fill(SCRIBBLE)
  }
  return Buffer.concat(chunks)
}

const SCRIBBLE = 0x5a

/** Compares, and writes over what was handed out: it is its caller's, so no later read may show it. */
function isPart(read: Uint8Array, expected: Uint8Array, what: string): void {
  sameBytes(read, expected, what)
  read.fill(SCRIBBLE)
}

const WAYS = { bytes: (blob: StoredBlob) => blob.bytes(), streamed, iterated }

export const get = stepKind<{ by: number; content: number; way: keyof typeof WAYS }>({
  name: 'get',
  args: contents =>
    fc.record({ by: stores, content: contentNumbers(contents), way: fc.constantFrom('bytes', 'streamed', 'iterated') }),
  toleratesReleases: true,
  async run(world, { by, content, way }) {
    const blob = await world.at(by).store.get(world.keyOf(content))
    equal(blob?.size, world.pool.entries.has(content) ? world.pool.lengthOf(content) : undefined, 'get finds an entry')
    if (blob === undefined) return
    if (world.pool.isDamaged(content)) await refuses(() => WAYS[way](blob), 'ERR_BLOB_CORRUPT', 'damage is reported')
    else isPart(await WAYS[way](blob), bytesIn(world, content), 'a whole read gives what was put')
  }
})

/** Bounds of ranges: whole numbers around the content and its windows, from either end, and none. */
const bounds = fc.oneof(
  fc.constantFrom(undefined, 0, 1, -1, 1024, WINDOW_LENGTH - 1, WINDOW_LENGTH, WINDOW_LENGTH + 1, -4000, Infinity),
  fc.integer({ min: -6000, max: 6000 })
)

export const range = stepKind<{ by: number; content: number; start: number | undefined; end: number | undefined }>({
  name: 'range',
  args: contents =>
    fc.record({ by: stores, content: fc.oneof(fc.constant(2), contentNumbers(contents)), start: bounds, end: bounds }),
  toleratesReleases: true,
  canRun: ({ pool }, { content }) => pool.entries.has(content) && !pool.isDamaged(content),
  async run(world, { by, content, start, end }) {
    const blob = present(await world.at(by).store.get(world.keyOf(content)), 'get finds an entry')
    const part = bytesIn(world, content).slice(start, end)
    const slice = blob.slice(start, end)
    equal(slice.size, part.length, 'the length of a range')
    isPart(await slice.bytes(), part, 'a range gives the bytes between its bounds')
    isPart(await slice.bytes(), part, 'a range that is read again gives the same bytes')
    isPart(await iterated(slice), part, 'a range that is iterated gives the bytes between its bounds')
  }
})

/** A read that is left in the middle leaves nothing open. */
export const abandon = stepKind<{ by: number; content: number }>({
  name: 'abandon',
  args: () => fc.record({ by: stores, content: fc.constantFrom(2, 2, 2, 1) }),
  toleratesReleases: true,
  canRun: ({ pool, factory }, { content }) =>
    factory.traits.includes('handles') && pool.entries.get(content)?.tier === 'large' && !pool.isDamaged(content),
  async run(world, { by, content }) {
    const { store } = world.at(by)
    const oracle = oracleOf(world.factory, store)
    const handles = async () => (await oracle.handles?.()) ?? 0
    const blob = present(await store.get(world.keyOf(content)), 'get finds an entry')
    // What is opened once and kept is open after this.
    await blob.bytes()
    const before = await handles()
    for await (const chunk of blob) if (chunk.length >= 0) break
    await becomes(async () => (await handles()) <= before, 'a read that is left in the middle is closed')
  }
})

export const has = stepKind<{ by: number }>({
  name: 'has',
  args: () => fc.record({ by: stores }),
  toleratesReleases: true,
  async run(world, { by }) {
    const { store } = world.at(by)
    const { pool, contents } = world
    const found = await store.hasMany(contents.map(({ key }) => key))
    const expected = contents.map(({ key }, content) => [key, pool.entries.has(content)])
    equal([...found], expected, 'hasMany tells which keys have an entry')
    for (const [content, { key }] of contents.entries())
      equal(await store.has(key), pool.entries.has(content), 'has tells whether there is an entry')
  }
})

export const stat = stepKind<{ by: number; content: number }>({
  name: 'stat',
  args: contents => fc.record({ by: stores, content: contentNumbers(contents) }),
  toleratesReleases: true,
  async run(world, { by, content }) {
    const key = world.keyOf(content)
    const entry = world.pool.entries.get(content)
    const length = world.pool.lengthOf(content)
    const expected = entry && { key, length, algorithm: 'sha256', tier: entry.tier }
    equal(await world.at(by).store.stat(key), expected, 'stat tells length, algorithm and tier')
  }
})

export const list = stepKind<{ by: number; after: number | undefined }>({
  name: 'list',
  args: contents => fc.record({ by: stores, after: fc.option(contentNumbers(contents), { nil: undefined }) }),
  toleratesReleases: true,
  async run(world, { by, after }) {
    const { pool } = world
    const from = after === undefined ? '' : world.keyOf(after)
    const expected = pool
      .present()
      .map(content => ({ key: world.keyOf(content), length: pool.lengthOf(content) }))
      .filter(({ key }) => key > from)
    const listed: unknown[] = []
    for await (const each of world.at(by).store.list(from === '' ? {} : { after: from })) listed.push(each)
    equal(listed, expected, 'list gives every entry in the order of keys')
  }
})

export const usage = stepKind<{ by: number }>({
  name: 'usage',
  args: () => fc.record({ by: stores }),
  async run(world, { by }) {
    const { pool } = world
    const tier = (name: 'kv' | 'large') => {
      const found = pool.present().filter(content => pool.entries.get(content)?.tier === name)
      return { entries: found.length, bytes: found.reduce((sum, content) => sum + pool.lengthOf(content), 0) }
    }
    const perTier = { kv: tier('kv'), large: tier('large') }
    const expected = {
      entries: perTier.kv.entries + perTier.large.entries,
      bytes: perTier.kv.bytes + perTier.large.bytes,
      perTier,
      pins: pool.pinRows(),
      window: pool.window.size,
      stages: pool.stages().length,
      trash: pool.trash.length
    }
    equal(await world.at(by).store.usage(), expected, 'usage counts what there is')
  }
})

/** A medium that cannot be read is a failure, never an absence. */
export const failingLook = stepKind<{ by: number; content: number }>({
  name: 'failingLook',
  args: contents => fc.record({ by: stores, content: contentNumbers(contents) }),
  async run(world, { by, content }) {
    const { store, switches } = world.at(by)
    // What a store does before its first look is done before.
    await store.usage()
    switches.failsReads = true
    try {
      const key = world.keyOf(content)
      const looks = [() => store.get(key), () => store.stat(key), () => store.has(key), () => store.list().next()]
      for (const look of looks) await refuses(look, 'ERR_BLOB_ENGINE', 'a medium that cannot be read is an error')
    } finally {
      switches.failsReads = false
    }
  }
})

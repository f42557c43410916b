/**
 * What an application does with a store, one operation of the facade a step. Every step may be run any number of times, and once it has
 * failed a further run must succeed.
 */
import { Readable } from 'node:stream'
import type { BlobKey } from '@alkblobs/core/engine'
import type { Held, World } from './world.js'

export interface Step {
  /** The operation of the facade, as the surfaces name it. */
  readonly operation: string
  readonly name: string
  /** Brings about what the step needs, while nothing fails. */
  prepare?(world: World): Promise<unknown>
  run(world: World, prepared: unknown): Promise<void>
}

/** A step with what it prepared. */
function step<T>(
  operation: string,
  name: string,
  run: (world: World, prepared: T) => Promise<void>,
  prepare?: (world: World) => Promise<T>
): Step {
  return {
    operation,
    name,
    run: (world, prepared) => run(world, prepared as T),
    ...(prepare === undefined ? {} : { prepare })
  }
}

/** Puts something that nobody refers to, and lets go of it. */
async function unreferenced(world: World, bytes: Buffer): Promise<Held> {
  const receipt = await world.store.put(bytes)
  await receipt.release()
  return { key: receipt.key, bytes }
}

async function referenced(world: World, bytes: Buffer): Promise<Held> {
  await using receipt = await world.store.put(bytes)
  world.keep(receipt.key, bytes)
  return { key: receipt.key, bytes }
}

const both = (world: World) => world.pair()

function same(actual: Uint8Array | undefined, expected: Uint8Array, what: string): void {
  if (actual === undefined) throw new Error(`${what} answered nothing for what was acknowledged`)
  if (!Buffer.from(actual).equals(expected)) throw new Error(`${what} answered other bytes than were put`)
}

async function putAndKeep(world: World, content: Buffer, given: Buffer | Readable): Promise<void> {
  const receipt = await world.store.put(given)
  world.keep(receipt.key, content)
  await receipt.release()
}

const putting: readonly Step[] = [
  step('put', 'a small one', async world => {
    const bytes = world.small
    await putAndKeep(world, bytes, bytes)
  }),
  step('put', 'a large one', async world => {
    const bytes = world.large
    await putAndKeep(world, bytes, bytes)
  }),
  step('put', 'a large stream', async world => {
    const bytes = world.large
    const half = Math.floor(bytes.length / 2)
    await putAndKeep(world, bytes, Readable.from([bytes.subarray(0, half), bytes.subarray(half)]))
  }),
  step(
    'put',
    'what is there already',
    async (world, { small, large }) => {
      for (const { bytes } of [small, large]) await putAndKeep(world, bytes, bytes)
      await putAndKeep(world, large.bytes, Readable.from([large.bytes]))
    },
    both
  ),
  step('writer', 'in two chunks', async world => {
    const bytes = world.large
    const half = Math.floor(bytes.length / 2)
    await using writer = world.store.writer()
    await writer.write(bytes.subarray(0, half))
    await writer.write(bytes.subarray(half))
    const receipt = await writer.commit()
    world.keep(receipt.key, bytes)
    await receipt.release()
  }),
  step('writer', 'that is discarded', async world => {
    const writer = world.store.writer()
    await writer.write(world.large)
    await writer.discard()
  })
]

const joining: readonly Step[] = [
  step('joining', 'two blobs and the rows that refer to them', async world => {
    const { subject, store } = world
    // The long one first: its calls then meet nothing that the transaction has locked already.
    const contents = [world.large, world.small]
    const keys = await subject.together?.(async (transaction, refer) => {
      const joined = await store.joining(transaction)
      const made: BlobKey[] = []
      for (const bytes of contents) {
        const { key } = await joined.put(bytes)
        await refer(key)
        made.push(key)
      }
      return made
    })
    for (const [at, key] of (keys ?? []).entries()) world.keep(key, contents[at] as Buffer)
  })
]

const reading: readonly Step[] = [
  step(
    'get',
    'whole, streamed and in part',
    async (world, { small, large }) => {
      for (const { key, bytes } of [small, large]) {
        same(await (await world.store.get(key))?.bytes(), bytes, 'bytes()')
        const blob = await world.store.get(key)
        const chunks: Uint8Array[] = []
        for await (const chunk of blob ?? []) chunks.push(chunk)
        same(Buffer.concat(chunks), bytes, 'the stream')
        same(await blob?.slice(3, 9).bytes(), bytes.subarray(3, 9), 'slice()')
      }
    },
    both
  ),
  step(
    'stat',
    'and compare',
    async (world, { large }) => {
      const stat = await world.store.stat(large.key)
      if (stat?.length !== large.bytes.length) throw new Error('stat answered another length')
    },
    both
  ),
  step(
    'has',
    'each',
    async (world, { small, large }) => {
      for (const { key } of [small, large])
        if (!(await world.store.has(key))) throw new Error('has answered no for what was acknowledged')
    },
    both
  ),
  step(
    'hasMany',
    'two',
    async (world, { small, large }) => {
      const there = await world.store.hasMany([small.key, large.key])
      if (![...there.values()].every(Boolean)) throw new Error('hasMany answered no for what was acknowledged')
    },
    both
  ),
  step(
    'list',
    'all',
    async (world, { small }) => {
      const keys = new Set<string>()
      for await (const { key } of world.store.list()) keys.add(key)
      if (!keys.has(small.key)) throw new Error('list left out what was acknowledged')
    },
    both
  ),
  step('usage', 'once', async world => void (await world.store.usage())),
  step('why', 'once', async (world, { small }) => void (await world.store.why(small.key)), both),
  step('settings', 'once', async world => void (await world.store.settings()))
]

const removing: readonly Step[] = [
  step(
    'pin',
    'and release',
    async (world, { small, large }) => {
      for (const { key } of [small, large]) {
        const pin = await world.store.pin(key)
        if (pin === undefined) throw new Error('pin answered nothing for what was acknowledged')
        await pin.release()
      }
    },
    both
  ),
  step(
    'delete',
    'one of each size',
    async (world, held: readonly Held[]) => {
      for (const { key } of held) await world.store.delete(key)
    },
    async world => [await unreferenced(world, world.small), await unreferenced(world, world.large)]
  ),
  step(
    'deleteMany',
    'of which some are live',
    async (world, held: readonly Held[]) => {
      const outcomes = await world.store.deleteMany(held.map(({ key }) => key))
      for (const [key, outcome] of outcomes)
        if (outcome === 'deleted' && world.live.has(key)) throw new Error('a live blob was deleted')
    },
    async world => [
      await unreferenced(world, world.small),
      await unreferenced(world, world.large),
      await referenced(world, world.small)
    ]
  ),
  step(
    'sweep',
    'that stages and removes',
    async world => {
      for (let times = 0; times < 2; times++) {
        const { aborted, cause } = await world.store.sweep()
        if (aborted !== undefined) throw cause ?? new SweepAborted(aborted)
      }
    },
    async world => {
      await unreferenced(world, world.small)
      await unreferenced(world, world.large)
      // Staged already, so that the first of the two has something to execute. A pin that is held must be renewed and seen.
      await world.store.sweep()
      await unreferenced(world, world.large)
    }
  ),
  step(
    'sweep',
    'beside pins that it must renew',
    async world => {
      const { aborted, cause } = await world.store.sweep()
      if (aborted !== undefined) throw cause ?? new SweepAborted(aborted)
    },
    async world => {
      for (const bytes of [world.small, world.large]) {
        const receipt = await world.store.put(bytes)
        world.keep(receipt.key, bytes)
      }
    }
  ),
  step(
    'maintain',
    'with a scan',
    async world => void (await world.store.maintain({ scan: true })),
    async world => world.subject.orphan?.()
  ),
  step(
    'verify',
    'and repair',
    async world => {
      const { corrupt, dangling } = await world.store.verify({ repair: true })
      if (corrupt.length + dangling.length > 0) throw new Error('verify found damage')
    },
    both
  )
]

const keeping: readonly Step[] = [
  step('configure', 'the window delay', world => world.store.configure({ windowDelayMs: 0 })),
  step('backup', 'of nothing', world => world.store.backup(() => undefined)),
  step('acknowledgeMove', 'once', world => world.store.acknowledgeMove()),
  step('fork', 'the pool', async world => {
    // Memory cannot have been copied, and says so.
    if (world.store.form === 'durable') await world.store.fork({ bodies: 'copied' })
  }),
  // Taken back at once, so that the next one has to ask again.
  step('protect', 'by another table', async world => {
    const protection = await world.subject.protectTable?.(world.store, 'used_too')
    protection?.remove()
  }),
  step(
    'open',
    'after closing',
    async world => {
      await world.open()
      // The first write binds the media.
      await referenced(world, world.small)
    },
    async world => world.close()
  ),
  step('close', 'while pins are held', async world => {
    for (const bytes of [world.small, world.large]) await world.store.put(bytes)
    await world.close()
  })
]

/** A sweep that ended early without a cause of its own. */
export class SweepAborted extends Error {
  readonly code: string

  constructor(reason: string) {
    super(`the sweep was aborted: ${reason}`)
    this.name = 'SweepAborted'
    this.code = `aborted as ${reason}`
  }
}

/** Every step, in an order in which an application may take them. */
export const steps: readonly Step[] = [...putting, ...joining, ...reading, ...removing, ...keeping]

/** What makes and protects entries: `publish`, `pin`, `renew`, `release`. */
import type {
  BodyStore,
  Call,
  Catalog,
  Locator,
  PinRequest,
  Publication,
  PublishedBytes,
  PublishOutcome
} from '../engine.js'
import { EngineFault } from '../engine-fault.js'
import type { Pair } from './index.js'

type Staged = Extract<PublishedBytes, { kind: 'staged' }>
type Protecting = Pick<Catalog, 'publish' | 'pin' | 'renew' | 'release'>

export function protectingOf(pair: Pair): Protecting {
  const { near, far } = pair
  return {
    publish: (items, call) => Promise.all(items.map(item => publishOne(pair, item, call))),

    pin: (items, call) =>
      Promise.all(items.map(async item => (await pinOne(near, item, call)) ?? (await pinOne(far, item, call)))),

    async renew(request, call) {
      const { pins } = await near.renew({ ...request, stages: [] }, call)
      const { stages } = request
      if (pins.length + stages.length === 0) return { pins, stages }
      return far.renew({ ...request, pins }, call)
    },

    async release(pins, call) {
      await Promise.all([near.release(pins, call), far.release(pins, call)])
    }
  }
}

/**
 * Whoever has the entry answers for it, the near one first. Where neither has it, it is made by its length: bytes in a stage are
 * the far catalog's, bytes at hand are memory's.
 */
async function publishOne(pair: Pair, item: Publication, call: Call): Promise<PublishOutcome> {
  const { near, far } = pair
  const { bytes } = item
  if ((await near.find([item.key], call))[0] !== undefined) {
    const unstaged = bytes.kind === 'staged' ? await withoutStage(pair, item, bytes, call) : item
    if (unstaged === undefined) return { outcome: 'stage-lost' }
    const found = await one(near, unstaged, call)
    if (found.outcome !== 'absent') return found
  }
  if (bytes.kind !== 'inline' || item.healing?.tier === 'large') return one(far, item, call)
  // After a threshold was raised a short body may have its entry among the large ones.
  const found = await one(far, asking(item), call)
  return found.outcome === 'absent' ? one(near, item, call) : found
}

/**
 * What memory, which knows no stages, can make of a staged body: it finds the entry that is there, and heals it with the bytes of
 * the body, which were once short enough for it. The stage stays its owner's. `undefined` if it is gone, and the body with it.
 */
async function withoutStage(
  { far, bodies }: Pair,
  item: Publication,
  { stage, locator }: Staged,
  call: Call
): Promise<Publication | undefined> {
  if (item.healing?.tier !== 'kv') return asking(item)
  try {
    return { ...item, bytes: { kind: 'inline', body: await wholeOf(bodies, locator, item.length, call) } }
  } catch (error) {
    // A stage that went meanwhile took the body with it: that is the reason, not the medium's surprise.
    if ((await far.staged([stage], call))[0] !== true) return undefined
    throw error
  }
}

async function wholeOf(bodies: BodyStore, locator: Locator, length: number, call: Call): Promise<Uint8Array> {
  const body = new Uint8Array(length)
  let filled = 0
  for await (const chunk of bodies.read(locator, { start: 0, end: length }, call)) {
    body.set(chunk, filled)
    filled += chunk.length
  }
  if (filled < length) throw new EngineFault('corrupt', 'a staged body is shorter than what was written')
  return body
}

/** The same, without bytes: protects an entry that is there, and makes none. */
function asking({ healing: _, ...item }: Publication): Publication {
  return { ...item, bytes: { kind: 'none' } }
}

async function one(catalog: Catalog, item: Publication, call: Call): Promise<PublishOutcome> {
  return (await catalog.publish([item], call))[0] as PublishOutcome
}

async function pinOne(catalog: Catalog, item: PinRequest, call: Call) {
  return (await catalog.pin([item], call))[0]
}

/** Engine calls that never settle: whatever the facade was asked for ends by its deadline, and so does closing. */
import { type Operation, tapped, watch } from '@alkblobs/conformance'
import { openStore, type Store } from '@alkblobs/core'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { describe, expect, it } from 'vitest'
import { memoryFolder } from '../../src/index.js'
import { temporaryFolder } from '../bad-input/stores.js'

const TIMEOUT_MS = 250
/** A call makes several steps, and tidies up after one that failed; each may wait for its deadline once. */
const LATEST_MS = 20 * TIMEOUT_MS

const never = () => new Promise<never>(() => {})

const CATALOG = [
  'find',
  'read',
  'list',
  'explain',
  'usage',
  'stage',
  'staged',
  'unstage',
  'publish',
  'pin',
  'renew',
  'release',
  'lease',
  'candidates',
  'stageCandidates',
  'due',
  'mark',
  'remove',
  'trash',
  'known',
  'discard',
  'dropped',
  'maintain'
] as const satisfies readonly Operation[]
const BODIES = ['create', 'length', 'drop', 'scan', 'claimed'] as const satisfies readonly Operation[]
const SPECIAL = [
  'meta.read',
  'meta.compareAndSet',
  'body.read',
  'writer.write',
  'writer.seal',
  'lease.release'
] as const

type Step = (typeof CATALOG)[number] | (typeof BODIES)[number] | (typeof SPECIAL)[number]

/** An engine in which one step hangs from the moment on at which it is told to. */
function hanging(step: Step, isHanging: () => boolean): (definition: EngineDefinition) => EngineDefinition {
  const hold = (name: Step) => (name === step && isHanging() ? never() : undefined)
  const special = (definition: EngineDefinition) =>
    tapped(definition, {
      catalog: inner => ({
        meta: {
          read: async call => (await hold('meta.read')) ?? (await inner.meta.read(call)),
          compareAndSet: async (...args) =>
            (await hold('meta.compareAndSet')) ?? (await inner.meta.compareAndSet(...args))
        },
        lease: async call => {
          const lease = await inner.lease(call)
          const release = lease?.release.bind(lease)
          return lease && Object.assign(lease, { release: async () => (await hold('lease.release')) ?? release?.() })
        }
      }),
      bodies: inner => ({
        async *read(...args: Parameters<typeof inner.read>) {
          await hold('body.read')
          yield* inner.read(...args)
        }
      }),
      writer: inner => ({
        write: async chunk => (await hold('writer.write')) ?? (await inner.write(chunk)),
        seal: async key => (await hold('writer.seal')) ?? (await inner.seal(key))
      })
    })
  return definition => watch({ before: operation => hold(operation as Step) })(special(definition))
}

/** Everything that the facade can be asked for. */
function calls(store: Store, key: string, other: string, pinned: { release(): Promise<void> }) {
  const bytes = new Uint8Array(1_000)
  const chunks = async function* () {
    yield bytes.slice(0, 500).fill(1)
    yield bytes.slice(500).fill(2)
  }
  const work: Record<string, () => Promise<unknown>> = {
    put: () => store.put(bytes.slice().fill(3)),
    'put a small one': () => store.put('small'),
    'put a stream': () => store.put(chunks()),
    'put what is there': () => store.put(new Uint8Array(2_000).fill(7)),
    'a writer': async () => {
      await using writer = store.writer()
      await writer.write(bytes)
      await writer.commit()
    },
    get: async () => (await store.get(key))?.bytes(),
    'get a stream': async () => {
      for await (const _ of (await store.get(key)) ?? []);
    },
    'get a range': async () => (await store.get(key))?.slice(5, 9).bytes(),
    stat: () => store.stat(key),
    has: () => store.has(key),
    hasMany: () => store.hasMany([key, other]),
    list: async () => {
      for await (const _ of store.list());
    },
    pin: () => store.pin(key),
    delete: () => store.delete(other),
    deleteMany: () => store.deleteMany([other, key]),
    sweep: () => store.sweep(),
    'a dry run': () => store.sweep({ dryRun: true }),
    maintain: () => store.maintain({ scan: true }),
    verify: () => store.verify(),
    repair: () => store.verify({ repair: true }),
    usage: () => store.usage(),
    why: () => store.why(key),
    settings: () => store.settings(),
    configure: () => store.configure({ windowDelayMs: 0 }),
    release: () => pinned.release()
  }
  return work
}

/** How long a call took, and that what it rejected with has a code. */
async function endOf(name: string, call: () => Promise<unknown>): Promise<{ name: string; ms: number; code: unknown }> {
  const start = performance.now()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>(resolve => {
    timer = setTimeout(() => resolve('not at all'), LATEST_MS)
  })
  const end = call().then(
    () => 'fulfilled',
    (error: { code?: unknown; name: string }) => error.code ?? error.name
  )
  const code = await Promise.race([end, late])
  clearTimeout(timer)
  return { name, ms: performance.now() - start, code }
}

const CONFIGURATIONS: Readonly<Record<string, (folder: string) => { kv: EngineDefinition; large: EngineDefinition }>> =
  {
    'mem + local': folder => ({ kv: mem({ medium: createMedium() }), large: local({ root: `${folder}/large` }) }),
    'sqlite + local': folder => ({
      kv: sqlite({ file: `${folder}/kv.db`, durability: 'os' }),
      large: local({ root: `${folder}/large` })
    })
  }

/** A pool with something in every state, whose engines hang once they are told to. */
async function prepared(step: Step, media: { kv: EngineDefinition; large: EngineDefinition }) {
  let isHanging = false
  const wrap = hanging(step, () => isHanging)
  const store = await openStore({
    kv: wrap(media.kv),
    large: wrap(media.large),
    threshold: 10,
    operationTimeoutMs: TIMEOUT_MS,
    lockTimeoutMs: TIMEOUT_MS,
    windowDelayMs: 0,
    trashDelayMs: 0
  })
  store.protect({ name: 'nothing', live: () => [] })
  const pinned = await store.put(new Uint8Array(2_000).fill(7))
  const other = await store.put(new Uint8Array(3_000).fill(8))
  await other.release()
  await store.sweep()
  await store.put('staged').then(receipt => receipt.release())
  const hang = () => {
    isHanging = true
  }
  return { step, store, pinned, other, hang }
}

/** What did not end in time, or not with a code of ours. */
async function lateAmong({
  step,
  store,
  pinned,
  other,
  hang
}: Awaited<ReturnType<typeof prepared>>): Promise<string[]> {
  hang()
  const ends = await Promise.all(
    Object.entries(calls(store, pinned.key, other.key, pinned)).map(([name, call]) => endOf(name, call))
  )
  ends.push(await endOf('close', () => store.close()))
  return ends
    .filter(({ code }) => !/^(fulfilled|ERR_BLOB_[A-Z_]+)$/.test(String(code)))
    .map(({ name, ms, code }) => `${step}: ${name} took ${Math.round(ms)} ms and ended as ${String(code)}`)
}

describe.each(Object.entries(CONFIGURATIONS))('over %s', (_, mediaIn) => {
  // All of it waits and next to nothing works, so the stores wait side by side.
  it.each<[readonly Step[]]>([[CATALOG.slice(0, 12)], [CATALOG.slice(12)], [[...BODIES, ...SPECIAL]]])(
    'a call that hangs at one of %s ends by its deadline',
    async steps => {
      const stores = []
      for (const step of steps) stores.push(await prepared(step, mediaIn(temporaryFolder(memoryFolder()))))
      expect((await Promise.all(stores.map(lateAmong))).flat()).toEqual([])
    }
  )
})

/** Stores over a scripted engine, as the specs of this folder open them, and what they look at. */
import { onTestFinished } from 'vitest'
import { type BlobKey, openStore, type Store, type StoreOptions } from '../src/index.js'
import { Scripted } from './scripted-engine.js'

/** Lengths above this go to the large tier. */
export const THRESHOLD = 16

export interface Opened {
  readonly store: Store
  readonly engine: Scripted
}

type Given = Partial<StoreOptions> & { readonly engine?: Scripted; readonly kvOnly?: boolean }

/** A dual-tier store that is closed when the test ends, however it ends. */
export async function opened({ engine = new Scripted(), kvOnly = false, ...options }: Given = {}): Promise<Opened> {
  const tiers = kvOnly ? { kv: engine.kv } : { kv: engine.kv, large: engine.large }
  const store = await openStore({
    ...tiers,
    threshold: THRESHOLD,
    trashDelayMs: 0,
    operationTimeoutMs: 150,
    ...options
  })
  onTestFinished(async () => {
    engine.heal()
    await store.close().catch(() => {})
  })
  return { store, engine }
}

/** Content that differs in every byte from its neighbours; `seed` makes another one of the same length. */
export function bytes(length: number, seed = 0): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8) + seed * 31) % 256)
}

/** The key that no content of these tests has. */
export const ABSENT = `blake3:${'0'.repeat(64)}` as BlobKey

/** What a promise rejected with; fails if it resolved. */
export async function rejection(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  let answer: unknown
  try {
    answer = await promise
  } catch (error) {
    return error as Error & Record<string, unknown>
  }
  throw new Error(`expected a rejection, got ${typeof answer}`)
}

/** Settles with the promise, or says `hangs` after `ms`: a bound far above what is right, so that a hang fails by name. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | 'hangs'> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'hangs'>(resolve => {
    timer = setTimeout(() => resolve('hangs'), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Lets everything run that waits for nothing but its turn. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

export const NOTHING = { entries: 0, stages: 0, halves: 0, bodies: 0, trash: 0, open: 0 }

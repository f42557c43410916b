/** One command at work on one open pool: opens it, runs, closes it, whatever happens. */
import { setMaxListeners } from 'node:events'
import type { Store } from '@alkblobs/core'
import type { ExitCode } from './exit-codes.js'
import { UsageError } from './exit-codes.js'
import type { Output } from './output.js'
import { openPool, type PoolSettings, poolExists } from './pool.js'
import { DEFAULT_STORE, parseStoreUrl, type StoreAddress } from './store-url.js'
import type { Surroundings } from './surroundings.js'

/** The options that every command takes. */
export interface GlobalOptions {
  readonly store?: string
  readonly json?: boolean
  readonly windowDelayMs?: number
}

export interface Session {
  readonly store: Store
  readonly address: StoreAddress
  readonly output: Output
  readonly surroundings: Surroundings
  /** Fires when the work shall stop. */
  readonly signal: AbortSignal
}

export interface SessionOptions {
  /** The command only prints: it stops when nobody reads its output any more. Others finish what they were asked to do. */
  readonly isPrinting: boolean
  /** Says on stderr when there is no pool yet, because an empty answer would hide a misspelt folder. */
  readonly mentionsAbsentPool?: boolean
}

/** Opens the pool that the options or the environment name, does the work, and gives its exit code. */
export async function inSession(
  surroundings: Surroundings,
  output: Output,
  globals: GlobalOptions,
  { isPrinting, mentionsAbsentPool = false }: SessionOptions,
  work: (session: Session) => Promise<ExitCode>
): Promise<ExitCode> {
  const address = addressOf(surroundings, globals)
  const signal = isPrinting ? AbortSignal.any([surroundings.signal, output.readerGone]) : surroundings.signal
  // Every file under way listens for the one wish to stop; that many listeners are no leak.
  setMaxListeners(0, signal)
  signal.throwIfAborted()
  if (mentionsAbsentPool && !poolExists(address)) {
    output.note(`there is no pool at ${address.url} yet; the first put makes it`)
  }
  const settings: PoolSettings = globals.windowDelayMs === undefined ? {} : { windowDelayMs: globals.windowDelayMs }
  const store = await openPool(address, settings)
  try {
    return await work({ store, address, output, surroundings, signal })
  } finally {
    await store.close()
  }
}

/** The pool that the options or the environment name. */
export function addressOf({ env }: Surroundings, { store }: GlobalOptions): StoreAddress {
  const named = env.ALKBLOBS_STORE ?? ''
  return parseStoreUrl(store ?? (named === '' ? DEFAULT_STORE : named))
}

/** Reads an option that is a time in milliseconds. */
export function parseMilliseconds(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(value)) throw new UsageError(`"${text.slice(0, 40)}" is not a whole number of milliseconds`)
  return value
}

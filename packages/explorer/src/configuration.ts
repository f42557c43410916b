/** What a search is made over: a pool, instances of it, and what each of them does. */
import { createHash } from 'node:crypto'
import { type BlobKey, formatKey } from '@alkblobs/core/engine'
import type { Bug } from './bug.js'
import type { Actor } from './run.js'

export interface Configuration {
  /** Names it in reports and in the ids of its schedules. */
  readonly name: string
  readonly form: 'inline' | 'durable'
  /** Whether the catalog is on a server, by whose clock rows expire, and its stores are instances of a fleet. Default false. */
  readonly fleet?: boolean
  /** Whether contents are longer than the threshold, so that their bytes go to the body store. Default false. */
  readonly large?: boolean
  /** Done one after the other, unexplored, by an instance that closes afterwards. */
  readonly before?: readonly Operation[]
  /** Whether the pool is made within the explored part. Default: it is there, and every instance has used it. */
  readonly isVirgin?: boolean
  readonly actors: readonly ActorPlan[]
  /** What may happen to all of it, each once, at any time. */
  readonly events?: readonly Event[]
  /** Whether puts may fail: something takes their stage, their answer or their process from them. */
  readonly mayFail?: boolean
  readonly windowDelayMs?: number
  readonly trashDelayMs?: number
  /** How the application says what is live. Default: it enumerates. */
  readonly source?: 'enumerating' | 'answering'
}

/** One sequence of operations; several may run on one instance. */
export interface ActorPlan {
  readonly on: Instance
  readonly does: readonly Operation[]
}

export type Instance = 'A' | 'B' | 'C'

export interface Operation {
  readonly name: string
  /** What of the pool it uses that not every operation does. */
  readonly uses?: readonly Use[]
  readonly run: (actor: Actor) => Promise<void>
}

/** The lease; the application's references, by changing them; what a scan or a reclaiming looks through; a delete that was asked for. */
export type Use = 'lease' | 'references' | 'leavings' | 'deletes'

export type Event =
  /** The instance's process ends; what it was doing is never answered, its rows stay, its lease is free. */
  | { readonly kind: 'crash'; readonly of: Instance }
  /** Everything was stopped for so long, or the clock was set forward. */
  | { readonly kind: 'pause'; readonly ms: number }
  /** Whoever has the lease loses it, and finds out when it next uses it. */
  | { readonly kind: 'lease lost' }
  /** The bytes of every large body are gone from the medium. */
  | { readonly kind: 'bodies vanish' }
  /** Every call that the instance has under way misses its deadline; its effect may still come. */
  | { readonly kind: 'deadline missed'; readonly of: Instance }

/** A pool as a search needs it to be: expirations far apart from everything short. */
export const PIN_TTL_MS = 10 * 60_000
export const STAGE_TTL_MS = 15 * 60_000
/** Longer than any row lives by itself. */
export const LONG_MS = 20 * 60_000
/** Two renewals late: a pin outlives this, and twice this only if it is renewed in between. */
export const LAPSE_MS = (2 * PIN_TTL_MS) / 3
/** How far the clock of a server is ahead of those of its clients: far enough that no expiry of the one is one of the other. */
export const SERVER_AHEAD_MS = 7 * 60 * 60_000
/** Entries up to this length are kept inline. */
export const THRESHOLD = 4

export type Content = 'K1' | 'K2'
export const CONTENTS: readonly Content[] = ['K1', 'K2']

/** The bytes that a content's name stands for. */
export function bytesOf(content: Content, large: boolean): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(large ? `${content}, a long one` : content)
}

export function keyOf(content: Content, large: boolean): BlobKey {
  return formatKey('sha256', createHash('sha256').update(bytesOf(content, large)).digest())
}

/** A configuration over which a search is expected to find something, and what was planted for it. */
export interface Planted {
  readonly bug: Bug
  readonly configuration: Configuration
}

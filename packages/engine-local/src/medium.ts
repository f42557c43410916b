/**
 * The folder of one open store, and the one question that makes absence trustworthy: is this still our medium?
 *
 * A body that is not there is `gone` only if the claim is readable at that moment and names the pool. An unmounted
 * root, a folder swapped for another, a claim without read permission: nothing is known then, and the failure is transient.
 */
import { type Algorithm, type Call, type Claim, EngineFault, type PoolId } from '@alkblobs/core/engine'
import type { KeptFiles } from './bodies/kept.js'
import type { Descriptors } from './descriptors.js'
import type { Files } from './files.js'

export interface Medium {
  readonly root: string
  readonly algorithm: Algorithm
  readonly files: Files
  readonly descriptors: Descriptors
  readonly kept: KeptFiles
  /** Folders of shards whose names this store knows to be durable. */
  readonly settled: Set<string>
  /** Whose folder this was when it was first looked at, and must be whenever something is said to be gone. */
  poolId: PoolId | undefined
  /** What this store claimed; `undefined` before. */
  claim: Claim | undefined
}

/** After its signal or its deadline a call begins nothing new (ENG-4). */
export function checkCall(call: Call): void {
  call.signal?.throwIfAborted()
  if (performance.now() > call.deadlineMs) throw new EngineFault('transient', 'the deadline passed')
}

/** Writing and dropping need a claim: without one nobody knows whose folder it is. */
export function checkClaimed(medium: Medium): void {
  if (medium.claim === undefined) throw new EngineFault('foreign', 'the folder was not claimed by this store')
}

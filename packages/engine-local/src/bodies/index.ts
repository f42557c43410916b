/** The body store, put together from its rooms. */
import type { BodyStore, Call } from '@alkblobs/core/engine'
import { checkCall, checkClaimed, type Medium } from '../medium.js'
import { claim, claimed, reclaim } from './claim.js'
import { drop } from './drop.js'
import { acquireLock, type Lock } from './lock.js'
import { bodyLength, readBody, readNow } from './reader.js'
import { scan } from './scan.js'
import { createBody } from './writer.js'

export interface OpenBodies {
  readonly bodies: BodyStore
  /** Lets go of the exclusive claim. */
  close(): Promise<void>
}

export function openBodies(medium: Medium): OpenBodies {
  let lock: Lock | undefined
  const begun = <Result>(call: Call, step: () => Promise<Result>): Promise<Result> =>
    new Promise((resolve, reject) => {
      checkCall(call)
      step().then(resolve, reject)
    })

  const bodies: BodyStore = {
    claimed: call => begun(call, () => claimed(medium)),

    claim: (wanted, call) =>
      begun(call, async () => {
        const inForce = await claim(medium, wanted)
        if (inForce.poolId !== wanted.poolId || inForce.mode !== wanted.mode) return inForce
        if (wanted.mode === 'exclusive' && lock === undefined) {
          const taken = await acquireLock(medium.root, medium.files)
          if (taken === 'held') return 'held'
          lock = taken
        }
        medium.claim = inForce
        return inForce
      }),

    reclaim: (expected, next, call) =>
      begun(call, () => reclaim(medium, { expected, next, holdsLock: lock !== undefined })),

    create: (stage, { length }, call) =>
      begun(call, async () => {
        checkClaimed(medium)
        await medium.descriptors.acquire('write', { signal: call.signal, waitMs: call.deadlineMs - performance.now() })
        try {
          return await createBody(medium, stage, length)
        } catch (error) {
          medium.descriptors.release('write')
          throw error
        }
      }),

    read: (locator, range, call) => readBody(medium, locator, range, call),
    readNow: (locator, range) => readNow(medium, locator, range),
    length: (locator, call) => begun(call, () => bodyLength(medium, locator)),
    drop: (what, call) => drop(medium, what, call),
    scan: (after, limit, call) =>
      begun(call, async () => {
        const isVirgin = medium.poolId === undefined && (await claimed(medium)) === undefined
        return isVirgin ? { found: [], next: undefined } : await scan(medium, after, limit, call)
      })
  }

  return {
    bodies,
    async close() {
      medium.kept.end()
      await medium.descriptors.close()
      await lock?.release()
    }
  }
}

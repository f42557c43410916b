/** The body store, put together from its rooms. */
import type { BodyStore, Call } from '@alkblobs/core/engine'
import { identityOf } from '@alkblobs/postgres-session'
import { checkCall, checkClaimed, type Medium } from '../medium.js'
import { claim, claimed, reclaim } from './claim.js'
import { drop } from './drop.js'
import { bodyLength, readBody } from './reader.js'
import { scan } from './scan.js'
import { createBody } from './writer.js'

export function openBodies(medium: Medium): BodyStore {
  const begun = async <Result>(call: Call, step: () => Promise<Result>): Promise<Result> => {
    checkCall(call)
    return await step()
  }
  return {
    claimed: call => begun(call, () => claimed(medium, call)),
    claim: (wanted, call) => begun(call, () => claim(medium, wanted, call)),
    reclaim: (expected, next, call) => begun(call, () => reclaim(medium, expected, next, call)),
    server: { identity: call => medium.sessions.ask(call, identityOf) },
    create: (stage, { length }, call) =>
      begun(call, async () => {
        await checkClaimed(medium, call)
        return await createBody(medium, stage, length, call)
      }),
    read: (locator, range, call) => readBody(medium, locator, range, call),
    length: (locator, call) => begun(call, () => bodyLength(medium, locator, call)),
    drop: (what, call) => drop(medium, what, call),
    scan: (after, limit, call) => begun(call, () => scan(medium, after, limit, call))
  }
}

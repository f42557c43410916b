/** INV-4 where one candidate cannot be judged now: it waits, and the others do not wait with it. */
import type { BlobKey } from '@alkblobs/core'
import { bytesOf } from '../content.js'
import { equal } from '../expect.js'
import { row } from '../row.js'
import { expectCounts, putReleased, sourceOver } from '../sweeping.js'
import { tapped } from '../tap.js'

const CANDIDATES = 300
const LENGTH = 40

// O13
/**
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const busyCandidate = row({
  name: 'a_candidate_that_somebody_locks_holds_up_no_other',
  statement:
    'A candidate whose entry somebody else has locked counts nowhere and stays due; every other one goes, and a later sweep takes it.',
  stamps: ['docs/spec/sweep.md#report', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-4',
  needs: ['durable'],
  cases: ['O13'],
  async run(factory) {
    let locked: BlobKey | undefined
    const wrap = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        catalog: inner => ({
          async remove(items, ...rest) {
            // What the medium would answer for an entry that an open transaction of somebody else holds.
            const free = items.filter(({ key }) => key !== locked)
            const outcomes = free.length === 0 ? [] : [...(await inner.remove(free, ...rest))]
            return items.map(({ key }) =>
              key === locked ? { outcome: 'busy' } : (outcomes.shift() ?? { outcome: 'busy' })
            )
          }
        })
      })
    const store = await factory.open({ wrap })
    store.protect(sourceOver([]))
    const puts = Array.from({ length: CANDIDATES }, (_, at) => putReleased(store, bytesOf(LENGTH, at)))
    const keys = (await Promise.all(puts)).map(({ key }) => key).sort()
    expectCounts(await store.sweep(), { candidatesStaged: CANDIDATES }, 'all are staged')
    locked = keys[CANDIDATES / 2]
    const others = { deleted: CANDIDATES - 1, bytesDeleted: (CANDIDATES - 1) * LENGTH }
    expectCounts(await store.sweep(), { ...others, alreadyStaged: 1 }, 'every other one goes in the same sweep')
    equal([...(await store.hasMany(keys)).values()].filter(Boolean).length, 1, 'the locked one is there')
    locked = undefined
    expectCounts(await store.sweep(), { deleted: 1, bytesDeleted: LENGTH }, 'a later sweep takes it')
    await store.close()
    await factory.teardown()
  }
})

export const lockedRows = [busyCandidate]

/** INV-4 and INV-11 beside a transaction of somebody else that has pinned and is not committed. */
import { bytesOf } from '../content.js'
import { equal, present } from '../expect.js'
import { oracleOf } from '../factory.js'
import { row } from '../row.js'
import { expectCounts, putReleased, sourceOver } from '../sweeping.js'

const CANDIDATES = 300
const LENGTH = 40

// O13
/**
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/spec/sweep.md#pins
 */
const uncommittedPin = row({
  name: 'an_uncommitted_pin_costs_no_other_candidate_and_keeps_its_own_once_committed',
  statement:
    'While a transaction that pins one candidate is open, every other one goes; the pinned one stays if it commits and goes if it does not.',
  stamps: ['docs/spec/sweep.md#report', 'docs/spec/sweep.md#pins'],
  invariant: 'INV-11',
  needs: ['durable', 'medium', 'age', 'transactions'],
  cases: ['O13'],
  async run(factory) {
    for (const end of ['commit', 'rollback'] as const) {
      const store = await factory.open({ lockTimeoutMs: 1_000 })
      const oracle = oracleOf(factory, store)
      store.protect(sourceOver([]))
      const puts = Array.from({ length: CANDIDATES }, (_, at) => putReleased(store, bytesOf(LENGTH, at)))
      const keys = (await Promise.all(puts)).map(({ key }) => key).sort()
      const pinned = present(keys[CANDIDATES / 2], 'a candidate')
      expectCounts(await store.sweep(), { candidatesStaged: CANDIDATES }, 'all are staged')
      const open = present(await oracle.pinInTransaction?.(pinned), 'an open transaction')
      const others = { deleted: CANDIDATES - 1, bytesDeleted: (CANDIDATES - 1) * LENGTH }
      expectCounts(await store.sweep(), { ...others, alreadyStaged: 1 }, 'every other one goes in the same sweep')
      equal(await store.has(pinned), true, 'the one in the transaction is there')
      await open[end]()
      const after = await store.sweep()
      equal(after.aborted, undefined, 'a sweep after the transaction')
      equal([after.deleted, await store.has(pinned)], end === 'commit' ? [0, true] : [1, false], `after ${end}`)
      if (end === 'commit') {
        await oracle.expirePins?.(pinned)
        let deleted = 0
        for (let time = 0; time < 2; time += 1) deleted += (await store.sweep()).deleted
        equal(deleted, 1, 'once the pin is over it goes like any other')
      }
      await store.close()
    }
    await factory.teardown()
  }
})

export const openTransactionRows = [uncommittedPin]

/** INV-3, INV-8 and INV-11 in a transaction of the application: what is put there is there with its commit, or not at all. */
import type { Store } from '@alkblobs/core'
import { bytesOf } from '../content.js'
import { equal, present, refuses, sameBytes } from '../expect.js'
import { type JoinableTransaction, oracleOf, type StoreFactory } from '../factory.js'
import { row } from '../row.js'
import { expectCollected, expectCounts, expectEntries, expectNoResidue, putReleased, sourceOver } from '../sweeping.js'

const SHORT = 1_000
/** Longer than any stage lives. */
const STAGE_OVER_MS = 24 * 60 * 60 * 1000

/** Works in a transaction of an application, which the work ends. Its session is given back however that ends: an open one keeps the pool's tables. */
async function inTransaction(
  factory: StoreFactory,
  store: Store,
  work: (transaction: JoinableTransaction) => Promise<void>
): Promise<void> {
  const transaction = present(await oracleOf(factory, store).transaction?.(), 'a transaction of an application')
  try {
    await work(transaction)
  } finally {
    await transaction.release()
  }
}

/** A short content, and where there is a large tier a long one. */
function contentsOf({ traits, threshold = 0 }: StoreFactory): readonly Uint8Array[] {
  return traits.includes('dual-tier') ? [bytesOf(SHORT), bytesOf(threshold + 1, 2)] : [bytesOf(SHORT)]
}

/**
 * Contract stamp: docs/spec/joining.md#putcontent-options
 * Contract stamp: docs/spec/joining.md#what-others-see-while-it-is-open
 */
const withItsCommit = row({
  name: 'what_is_put_in_a_transaction_is_there_with_its_commit_and_not_without_it',
  statement:
    'Nobody sees what is put in a transaction of the application before it commits; then it is there, unpinned; after a rollback nothing is left.',
  stamps: ['docs/spec/joining.md#putcontent-options', 'docs/spec/joining.md#what-others-see-while-it-is-open'],
  invariant: 'INV-3',
  needs: ['durable', 'medium', 'age', 'joins'],
  async run(factory) {
    const contents = contentsOf(factory)
    for (const end of ['commit', 'rollback'] as const) {
      const store = await factory.open()
      store.protect(sourceOver([]))
      const keys: string[] = []
      await inTransaction(factory, store, async transaction => {
        const joined = await store.joining(transaction.handle)
        for (const content of contents) {
          const { key, length, created } = await joined.put(content)
          equal({ length, created }, { length: content.length, created: true }, 'the answer to a put in a transaction')
          equal((await joined.put(content)).created, false, 'the transaction sees what it has put')
          equal(await store.has(key), false, 'nobody else sees it before the commit')
          keys.push(key)
        }
        await expectEntries(store, 0, 'before the commit')
        await transaction[end]()
      })
      await expectEntries(store, end === 'commit' ? contents.length : 0, `after ${end}`)
      for (const [nth, key] of keys.entries()) {
        const blob = await store.get(key)
        equal(blob !== undefined, end === 'commit', `a get after ${end}`)
        if (blob !== undefined) sameBytes(await blob.bytes(), contents[nth] as Uint8Array, `after ${end}`)
      }
      if (end === 'commit') {
        await expectNoResidue(store, 'a put in a transaction leaves no pin and no stage')
        const bytes = contents.reduce((sum, { length }) => sum + length, 0)
        await expectCollected(store, contents.length, bytes, 'what nobody references goes like any other entry')
      }
      await oracleOf(factory, store).age?.(STAGE_OVER_MS)
      await store.maintain()
      await expectNoResidue(store, `after ${end}, once its stages are over`)
      equal((await oracleOf(factory, store).counts()).bodies, 0, `bodies after ${end}`)
      for (const content of contents) equal((await putReleased(store, content)).created, true, `put anew after ${end}`)
      await store.close()
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/joining.md#putcontent-options
 * Contract stamp: docs/spec/joining.md#what-others-see-while-it-is-open
 */
const keptUntilItsEnd = row({
  name: 'an_entry_found_in_a_transaction_is_kept_until_it_ends_and_nobody_waits_for_it',
  statement:
    'A candidate that a transaction of the application has found is neither swept nor deleted while it is open, every other one goes, and its row is cancelled if the transaction commits.',
  stamps: ['docs/spec/joining.md#putcontent-options', 'docs/spec/joining.md#what-others-see-while-it-is-open'],
  invariant: 'INV-11',
  needs: ['durable', 'joins', 'medium'],
  async run(factory) {
    for (const content of contentsOf(factory)) {
      for (const end of ['commit', 'rollback'] as const) {
        const store = await factory.open({ lockTimeoutMs: 1_000 })
        store.protect(sourceOver([]))
        const { key } = await putReleased(store, content)
        const other = await putReleased(store, bytesOf(SHORT, 3))
        expectCounts(await store.sweep(), { candidatesStaged: 2 }, 'both are staged')
        await inTransaction(factory, store, async transaction => {
          const found = await (await store.joining(transaction.handle)).put(content)
          equal(found, { key, length: content.length, created: false }, 'the transaction finds the entry')
          const others = { deleted: 1, bytesDeleted: other.length, alreadyStaged: 1 }
          expectCounts(await store.sweep(), others, 'the other one goes, and this one stays')
          await refuses(
            () => store.delete(key),
            'ERR_BLOB_GC_REFUSED',
            'a delete of what an open transaction has found'
          )
          await store.maintain()
          equal(await store.has(key), true, 'it is there')
          await transaction[end]()
        })
        const gone = { deleted: 1, bytesDeleted: content.length }
        if (end === 'commit') {
          const cancelled = { cancelledByArbitration: 1, candidatesStaged: 1 }
          expectCounts(await store.sweep(), cancelled, 'the commit has cancelled its row')
        }
        expectCounts(await store.sweep(), gone, `what nobody references goes after ${end}`)
        await expectNoResidue(store, `after ${end}`)
        await store.close()
      }
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/joining.md#which-transactions
 * Contract stamp: docs/spec/joining.md#putcontent-options
 */
const noTransaction = row({
  name: 'without_an_open_transaction_a_joined_store_is_refused_and_puts_nothing',
  statement:
    'What is no open transaction is refused, and what is put after the end of one is refused as a conflict: nothing is done outside of a transaction.',
  stamps: ['docs/spec/joining.md#which-transactions', 'docs/spec/joining.md#putcontent-options'],
  invariant: 'INV-8',
  needs: ['durable', 'joins', 'medium'],
  async run(factory) {
    const isConflict = (error: unknown) => (error as { kind?: unknown }).kind === 'conflict'
    for (const content of contentsOf(factory)) {
      const store = await factory.open()
      for (const nothing of [undefined, null, {}, 'BEGIN', { unsafe: () => [] }]) {
        await refuses(() => store.joining(nothing), 'ERR_BLOB_INVALID_ARGUMENT', 'what is no transaction')
      }
      for (const end of ['commit', 'rollback'] as const) {
        await inTransaction(factory, store, async transaction => {
          const joined = await store.joining(transaction.handle)
          await transaction[end]()
          await refuses(() => joined.put(content), isConflict, `a put after ${end}`)
          await refuses(() => store.joining(transaction.handle), 'ERR_BLOB_INVALID_ARGUMENT', `joining after ${end}`)
        })
      }
      await expectEntries(store, 0, 'nothing was put')
      await store.close()
    }
    await factory.teardown()
  }
})

export const joiningRows = [withItsCommit, keptUntilItsEnd, noTransaction]

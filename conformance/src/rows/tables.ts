/** INV-4 where a table of the application says what is live: it protects, nobody alters it, and not knowing it removes nothing. */
import type { BlobKey, Store } from '@alkblobs/core'
import { GcRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { codeOf, equal, holds, present, refuses } from '../expect.js'
import { type ApplicationTable, oracleOf, type StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { expectAborted, expectCounts, expectEntries, putReleased } from '../sweeping.js'

const applicationOf = async (factory: StoreFactory, store: Store, form: 'text' | 'bytes' = 'text') =>
  present(await oracleOf(factory, store).application?.(form), 'a table of an application')

/** Entries of every tier that nothing holds. */
async function entries(store: Store, factory: StoreFactory, count: number): Promise<BlobKey[]> {
  const lengths = tierLengths(factory)
  const keys: BlobKey[] = []
  for (let at = 0; at < count; at += 1) {
    keys.push((await putReleased(store, bytesOf(lengths[at % lengths.length] ?? 1, at))).key)
  }
  return keys
}

/** Fails unless the table is what it was. */
async function unchanged(table: ApplicationTable, act: () => Promise<void>): Promise<void> {
  const before = await table.look()
  await act()
  equal(await table.look(), before, 'the table of the application is as it was')
}

/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const protects = row({
  name: 'an_application_table_protects_what_it_references_and_is_never_altered',
  statement:
    'Rows of a registered table keep their entries from sweeps and deletes for as long as they are there; the table is neither owned nor changed.',
  stamps: ['docs/spec/sweep.md#liveness-sources', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-4',
  needs: ['durable', 'tables'],
  async run(factory) {
    for (const form of ['text', 'bytes'] as const) {
      const store = await factory.open()
      const keys = await entries(store, factory, 12)
      const [one, other] = keys as [BlobKey, BlobKey]
      const table = await applicationOf(factory, store, form)
      await table.reference([one, other, one])
      const protection = await store.protect(table.source)
      await unchanged(table, async () => {
        expectCounts(await store.sweep(), { live: 2, candidatesStaged: 10 }, 'what the table names is live')
        equal((await store.sweep()).deleted, 10, 'what it does not name goes')
        const refused = await refuses(() => store.delete(one), GcRefused, 'a delete of what the table names')
        equal((refused as { reason?: unknown }).reason, 'live', 'and says why')
        equal((await store.why(one)).verdict, 'live', 'why')
      })
      await table.forget([other])
      equal((await store.sweep()).candidatesStaged, 1, 'what the table forgot is staged')
      await table.reference([other])
      equal((await store.sweep()).deleted, 0, 'and kept if it is referenced again in time')
      await table.forget([one, other])
      await store.sweep()
      await store.sweep()
      await expectEntries(store, 0, 'what nobody references goes')
      protection.remove()
      expectAborted(await store.sweep(), 'NoLivenessSources', 'a table that was taken out protects no more')
      await store.close()
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const refused = row({
  name: 'a_table_that_cannot_protect_is_refused_when_it_is_registered',
  statement:
    'A table or column that is not there, or holds no keys, is an error of `protect`, not of a later sweep, and registers nothing.',
  stamps: ['docs/spec/sweep.md#liveness-sources', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-8',
  needs: ['durable', 'tables'],
  run: over(async (store, factory) => {
    await entries(store, factory, 3)
    const { source } = await applicationOf(factory, store)
    const { table, column } = source
    const wrong = {
      'a table that is not there': { table: `${table.split('.')[0]}.nothing`, column },
      'a schema that is not there': { table: `nowhere.${table.split('.')[1]}`, column },
      'a column that is not there': { table, column: 'nothing' },
      'a column of numbers': { table, column: 'id' },
      'a column of other text': { table, column: 'note' },
      'an empty name': { table: '', column }
    }
    for (const [what, given] of Object.entries(wrong)) {
      const typed = (error: unknown) => codeOf(error)?.startsWith('ERR_BLOB_') === true
      await refuses(() => store.protect(given), typed, what)
    }
    expectAborted(await store.sweep(), 'NoLivenessSources', 'nothing was registered')
    await expectEntries(store, 3, 'and nothing removed')
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const dropped = row({
  name: 'a_table_that_is_dropped_aborts_the_sweep_and_nothing_is_removed',
  statement:
    'Once a registered table is gone nobody knows what it named: sweeps abort, deletes are refused, and every entry stays.',
  stamps: ['docs/spec/sweep.md#liveness-sources', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-4',
  needs: ['durable', 'tables'],
  run: over(async (store, factory) => {
    const keys = await entries(store, factory, 6)
    const [first] = keys as [BlobKey]
    const table = await applicationOf(factory, store)
    await table.reference(keys.slice(0, 2))
    const protection = await store.protect(table.source)
    equal((await store.sweep()).candidatesStaged, 4, 'what the table does not name is staged')
    await table.drop()
    expectAborted(await store.sweep(), 'ProtectFailed', 'a sweep without its table')
    await refuses(
      () => store.delete(first),
      error => codeOf(error)?.startsWith('ERR_BLOB_') === true,
      'a delete'
    )
    equal([...(await store.hasMany(keys)).values()].filter(Boolean).length, keys.length, 'every entry is there')
    protection.remove()
    const replacement = await applicationOf(factory, store)
    await replacement.reference(keys.slice(0, 2))
    await store.protect(replacement.source)
    await store.sweep()
    await store.sweep()
    holds(await store.has(first), 'what another table names stays')
    await expectEntries(store, 2, 'with another table the sweeps go on')
  })
})

export const tableRows = [protects, refused, dropped]

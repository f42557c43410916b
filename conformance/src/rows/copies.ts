/** INV-4 and INV-11 over copies of a pool: a copy becomes a pool of its own before it removes, and nothing goes while one is made. */
import { PoolRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { codeOf, equal, holds, present, refuses, sameBytes } from '../expect.js'
import { oracleOf } from '../factory.js'
import { row } from '../row.js'
import { collect, expectAborted, expectNoResidue, putReleased, releasesArrived, sourceOver } from '../sweeping.js'

const refusedFor = (reason: string) => (error: unknown) =>
  codeOf(error) === PoolRefused && (error as { reason?: unknown }).reason === reason

/**
 * Contract stamp: docs/spec/fleet.md#copies
 */
const forked = row({
  name: 'a_forked_copy_is_a_pool_of_its_own_and_takes_nothing_from_its_original',
  statement:
    'A copy of catalog and large medium gets an id and a claim of its own; then it collects its entries, and the original still has every byte.',
  stamps: ['docs/spec/fleet.md#copies'],
  invariant: 'INV-11',
  needs: ['durable', 'medium', 'reopen', 'copy'],
  async run(factory) {
    const first = await factory.open()
    const contents = tierLengths(factory).flatMap(length => [bytesOf(length, 1), bytesOf(length, 2)])
    const keys = await Promise.all(contents.map(async bytes => (await putReleased(first, bytes)).key))
    await releasesArrived(first)
    const copy = present(await factory.copy?.(first), 'a store over a copy')
    const original = present(await factory.reopen?.(first), 'the original')
    if (contents.length > 2)
      await refuses(() => copy.fork(), refusedFor('media'), 'a fork that says nothing of its bodies')
    const id = await copy.fork({ bodies: 'copied' })
    holds(/^[0-9a-f]{32}$/.test(id), 'the copy has an id of its own')
    copy.protect(sourceOver(keys.slice(0, 1)))
    equal((await collect(copy)).deleted, keys.length - 1, 'the copy collects')
    await copy.maintain({ scan: true })
    await expectNoResidue(copy, 'down to the last body')
    equal((await copy.put(contents.at(-1) as Uint8Array)).created, true, 'and goes on')
    for (const [at, key] of keys.entries()) {
      const blob = present(await original.get(key), 'an entry of the original')
      sameBytes(await blob.bytes(), contents[at] as Uint8Array, 'is whole')
    }
    equal((await original.verify()).clean, true, 'the original is whole')
    const again = present(await factory.reopen?.(copy), 'the copy once more')
    equal((await again.usage()).entries, 2, 'the copy is found as it was left')
    await again.close()
    await original.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#copies
 */
const elsewhere = row({
  name: 'a_copy_on_a_server_removes_nothing_until_it_is_forked_or_acknowledged',
  statement:
    'A pool that is found in another database or on another server than before may be a copy: it is read and written, sweeps, maintenance and backups are refused, and deletes drop no body.',
  stamps: ['docs/spec/fleet.md#copies'],
  invariant: 'INV-4',
  needs: ['durable', 'medium', 'schema', 'copy'],
  async run(factory) {
    for (const way of ['acknowledged', 'forked'] as const) {
      const first = await factory.open()
      const lengths = tierLengths(factory)
      const keys = await Promise.all(lengths.map(async length => (await putReleased(first, bytesOf(length, 1))).key))
      await releasesArrived(first)
      const copy = present(await factory.copy?.(first), 'a store over a copy')
      const oracle = oracleOf(factory, copy)
      copy.protect(sourceOver([]))
      const { bodies } = await oracle.counts()
      equal((await copy.put(bytesOf(lengths[0] ?? 1, 1))).created, false, 'the copy is written')
      await refuses(() => copy.sweep(), refusedFor('moved'), 'a sweep')
      await refuses(() => copy.maintain(), refusedFor('moved'), 'maintenance')
      await refuses(() => copy.backup(() => {}), refusedFor('moved'), 'a backup')
      equal(await copy.delete(keys.at(-1) as string), true, 'an entry of the copy is its own')
      equal((await oracle.counts()).bodies, bodies, 'its body may be the original’s')
      if (way === 'acknowledged') await copy.acknowledgeMove()
      else await copy.fork({ bodies: 'copied' })
      equal((await copy.maintain()).aborted, undefined, `${way}, it is maintained`)
      equal((await oracle.counts()).trash, 0, `${way}, it drops what was deleted`)
      equal((await copy.sweep()).aborted, undefined, `${way}, it is swept`)
      await copy.close()
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#copies
 */
const backup = row({
  name: 'nothing_is_removed_or_dropped_while_a_backup_is_made',
  statement:
    'During a backup puts and deletes go on, sweeps and maintenance of every instance step back, and no body that a deleted entry used is dropped before the end.',
  stamps: ['docs/spec/fleet.md#copies'],
  invariant: 'INV-4',
  needs: ['durable', 'medium', 'second'],
  async run(factory) {
    const store = await factory.open()
    const other = present(await factory.second?.(store), 'a second instance')
    const oracle = oracleOf(factory, store)
    for (const each of [store, other]) each.protect(sourceOver([]))
    const keys: string[] = []
    for (const length of tierLengths(factory)) {
      keys.push((await putReleased(store, bytesOf(length, 1))).key)
      await putReleased(store, bytesOf(length, 2))
    }
    await releasesArrived(store)
    const { bodies } = await oracle.counts()
    const answer = await store.backup(async signal => {
      for (const each of [store, other]) {
        expectAborted(await each.sweep(), 'SweeperLock', 'a sweep beside a backup')
        equal((await each.maintain()).aborted, 'SweeperLock', 'maintenance beside a backup')
        await refuses(
          () => each.backup(() => {}),
          error => (error as { kind?: unknown }).kind === 'conflict',
          'a second backup'
        )
      }
      for (const [at, key] of keys.entries()) equal(await (at % 2 === 0 ? store : other).delete(key), true, 'a delete')
      equal((await oracle.counts()).bodies, bodies, 'every body is still there')
      equal((await other.put(bytesOf(10, 3))).created, true, 'a put goes on')
      return signal.aborted
    })
    equal(answer, false, 'the backup answers what its function did')
    await other.maintain()
    equal((await oracle.counts()).trash, 0, 'afterwards what was deleted is dropped')
    holds((await collect(store)).deleted > 0, 'and sweeps go on')
    await other.close()
    await store.close()
    await factory.teardown()
  }
})

export const copyRows = [forked, elsewhere, backup]

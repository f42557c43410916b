import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses } from '../expect.js'
import { type MediumCounts, oracleOf } from '../factory.js'
import { PRODUCERS, throwing } from '../failing.js'
import { row } from '../row.js'
import { iterate, PUT_PATHS } from '../sources.js'
import { putReleased, sourceOver } from '../sweeping.js'
import { gate, tapped } from '../tap.js'

const placed = ({ inlineEntries, bodies }: MediumCounts) => ({ inlineEntries, bodies })
const leftovers = ({ stages, trash, window, pins }: MediumCounts) => ({ stages, trash, window, pins })
const NOTHING = { stages: 0, trash: 0, window: 0, pins: 0 }

/**
 * Contract stamp: docs/spec/engine-contract.md#stages
 * Contract stamp: docs/spec/engine-contract.md#body-store
 * Contract stamp: docs/adr/010-engine-contract.md#decision
 */
const exactOnDisk = row({
  name: 'stage_hygiene_exact_counts_on_disk_over_both_put_paths',
  statement:
    'On the medium: one stage while a put runs, none after a failure, a discard or a lost race, one body after a success.',
  stamps: [
    'docs/spec/engine-contract.md#stages',
    'docs/spec/engine-contract.md#body-store',
    'docs/adr/010-engine-contract.md#decision'
  ],
  invariant: 'INV-3',
  needs: ['dual-tier', 'medium'],
  async run(factory) {
    const store = await factory.open()
    const oracle = oracleOf(factory, store)
    const large = (tierLengths(factory).at(-1) ?? 1) + 300_000
    const bytes = bytesOf(large, 3)
    const boom = new Error('the producer failed')
    const property = 'the medium after'
    for (const options of [{}, { length: large + 1 }]) {
      const paused = gate()
      const script = { bytes, chunkLength: 10_000, atEnd: () => paused.pass().then(throwing(boom)) }
      const failing = store.put(present(PRODUCERS['an async iterable']?.(script), 'a producer').content, options)
      const refused = refuses(
        () => failing,
        error => error === boom,
        'the put fails with its cause'
      )
      await paused.reached
      const during = await oracle.counts()
      holds(during.stages >= 1, 'while a put runs its stage is on the medium', `${during.stages} stages`)
      equal(placed(during), { inlineEntries: 0, bodies: 0 }, 'while a put runs there is no entry')
      paused.open()
      await refused
      equal(leftovers(await oracle.counts()), NOTHING, `${property} a failed put`)
      equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 0 }, `${property} a failed put`)
    }
    const writer = store.writer()
    await writer.write(bytes)
    await writer.discard()
    equal(leftovers(await oracle.counts()), NOTHING, `${property} a discarded writer`)
    const made = await store.put(iterate([bytes]))
    // A put that wrote all of its bytes and then found the entry: what it wrote has to go.
    for (const path of PUT_PATHS) await (await path.put(store, bytes)).release()
    const { stages, trash } = await oracle.counts()
    equal({ stages, trash }, { stages: 0, trash: 0 }, `${property} re-puts that lost`)
    equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 1 }, `${property} a success and its re-puts`)
    await made.release()
    equal(await store.delete(made.key), true, 'the entry is deleted')
    equal(
      { ...placed(await oracle.counts()), ...leftovers(await oracle.counts()) },
      { inlineEntries: 0, bodies: 0, ...NOTHING },
      `${property} everything is gone`
    )
    await store.close()
    await factory.teardown()
  }
})

const LATER = 24 * 60 * 60 * 1000

// O19
/**
 * Contract stamp: docs/spec/sweep.md#maintenance
 * Contract stamp: docs/spec/sweep.md#crash-points
 * Contract stamp: docs/spec/engine-contract.md#stages
 */
const deadWriter = row({
  name: 'what_a_stalled_writer_left_behind_is_reclaimed_after_its_expiry',
  statement:
    'The stage of a writer that went silent lives until it expires, then maintenance takes the row and the half body, and the writer cannot publish.',
  stamps: ['docs/spec/sweep.md#maintenance', 'docs/spec/sweep.md#crash-points', 'docs/spec/engine-contract.md#stages'],
  invariant: 'INV-12',
  needs: ['dual-tier', 'second', 'age', 'durable'],
  cases: ['O19'],
  async run(factory) {
    const store = await factory.open()
    const cleaner = present(await factory.second?.(store), 'a second instance')
    const oracle = oracleOf(factory, store)
    const kept = await cleaner.put(bytesOf(tierLengths(factory).at(-1) ?? 1, 1))
    const bytes = bytesOf(1_500_000, 19)
    const writer = store.writer()
    await writer.write(bytes)
    holds((await oracle.counts()).stages >= 1, 'the stalled writer has its stage on the medium')
    equal((await cleaner.maintain()).stagesReclaimed, 0, 'a stage that has not expired is left alone')
    holds((await oracle.counts()).stages >= 1, 'and is still there')
    await oracle.age?.(LATER)
    equal((await cleaner.maintain()).stagesReclaimed, 1, 'an expired stage is reclaimed and counted')
    const { stages, trash, bodies } = await oracle.counts()
    equal(
      { stages, trash, bodies },
      { stages: 0, trash: 0, bodies: 1 },
      'nothing is left of it, and the committed entry is'
    )
    await refuses(
      () => writer.commit(),
      () => true,
      'a writer whose stage expired cannot publish'
    )
    equal((await oracle.counts()).stages, 0, 'nor does it leave anything')
    equal(await cleaner.has(kept.key), true, 'the committed entry is untouched')
    await cleaner.close()
    await store.close()
    await factory.teardown()
  }
})

/** A medium that cannot drop the first body that was published on it. */
function poisonedMedium() {
  const denied = Object.assign(new Error('EACCES: permission denied, unlink'), {
    code: 'EACCES',
    errno: -13,
    syscall: 'unlink'
  })
  let poisoned: string | undefined
  const wrap = (definition: Parameters<typeof tapped>[0]) =>
    tapped(definition, {
      bodies: inner => ({
        async drop(what, call) {
          const results = await inner.drop(
            what.filter(one => one !== poisoned),
            call
          )
          return what.map(one =>
            one === poisoned
              ? { what: one, error: denied }
              : present(
                  results.find(result => result.what === one),
                  'a result'
                )
          )
        }
      }),
      catalog: inner => ({
        async publish(items, call) {
          for (const { bytes } of items) if (bytes.kind === 'staged') poisoned ??= bytes.locator
          return await inner.publish(items, call)
        }
      })
    })
  return { denied, wrap }
}

// O16
/**
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const bodiesGone = row({
  name: 'candidates_whose_bytes_are_gone_do_not_hold_up_the_others',
  statement:
    'Bytes that are gone already count as removed; a drop that fails is reported, its entry is gone, and all others go in the same sweep.',
  stamps: ['docs/spec/sweep.md#report', 'docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-4',
  needs: ['dual-tier', 'medium', 'corrupt'],
  cases: ['O16'],
  async run(factory) {
    const { denied, wrap } = poisonedMedium()
    const store = await factory.open({ wrap })
    const oracle = oracleOf(factory, store)
    const total = 60
    const large = tierLengths(factory).at(-1) ?? 1
    const keys = []
    for (let at = 0; at < total; at += 1) keys.push((await putReleased(store, bytesOf(large, at))).key)
    for (const key of keys.slice(1, 16)) await oracle.corrupt?.(key, 'remove')
    store.protect(sourceOver([]))
    const staging = await store.sweep()
    const report = store.form === 'durable' ? await store.sweep() : staging
    equal([report.aborted, report.deleted], [undefined, total], 'every entry is deleted in the same sweep')
    equal(
      report.failed.map(({ cause, key }) => [
        cause === denied || (cause as { cause?: unknown })?.cause === denied,
        key
      ]),
      [[true, keys[0]]],
      'the drop that failed is reported'
    )
    equal(
      placed(await oracle.counts()),
      { inlineEntries: 0, bodies: 1 },
      'only the bytes that could not be dropped are left'
    )
    const after = await store.sweep()
    equal([after.aborted, after.scanned, after.deleted], [undefined, 0, 0], 'the next sweep is not held up by it')
    await store.close()
    await factory.teardown()
  }
})

export const residueRows = [exactOnDisk, deadWriter, bodiesGone]

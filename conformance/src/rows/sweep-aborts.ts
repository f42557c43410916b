/** INV-4: a sweep that cannot know deletes nothing, on every form. */

import type { LivenessSource, Store } from '@alkblobs/core'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds } from '../expect.js'
import type { StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import {
  collect,
  countsOf,
  expectAborted,
  expectEntries,
  putReleased,
  releasesArrived,
  sourceOver
} from '../sweeping.js'

async function fill(store: Store, factory: StoreFactory): Promise<string[]> {
  const keys: string[] = []
  for (const length of tierLengths(factory)) {
    for (let at = 0; at < 3; at += 1) keys.push((await putReleased(store, bytesOf(length, at))).key)
  }
  return keys
}

// O04
/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const noSources = row({
  name: 'sweep_without_liveness_sources_aborts_and_deletes_nothing',
  statement:
    'Without a liveness source nothing is known to be dead: the sweep answers so, and does nothing; an empty source is an answer.',
  stamps: [
    'docs/spec/sweep.md#liveness-sources',
    'docs/spec/sweep.md#invariants',
    'docs/adr/005-windows-and-sweeps.md#decision'
  ],
  invariant: 'INV-4',
  cases: ['O04'],
  run: over(async (store, factory) => {
    const keys = await fill(store, factory)
    for (let time = 0; time < 2; time += 1) {
      expectAborted(await store.sweep(), 'NoLivenessSources', 'a sweep without any source')
    }
    store.protect(sourceOver([], 'gone again')).remove()
    expectAborted(await store.sweep(), 'NoLivenessSources', 'a sweep whose only source was removed')
    await expectEntries(store, keys.length, 'nothing was deleted')
    store.protect(sourceOver([]))
    equal((await collect(store)).deleted, keys.length, 'an empty source is an answer, and honoured')
  })
})

// O04, where the source belongs to another instance
/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 */
const othersSource = row({
  name: 'a_source_registered_on_another_instance_does_not_count',
  statement: 'An instance without a source of its own aborts its sweep, whatever another instance registered.',
  stamps: ['docs/spec/sweep.md#liveness-sources'],
  invariant: 'INV-4',
  needs: ['second'],
  cases: ['O04'],
  async run(factory) {
    const store = await factory.open()
    const keys = await fill(store, factory)
    const second = await factory.second?.(store)
    store.protect(sourceOver([]))
    holds(second !== undefined, 'a second instance')
    for (let time = 0; time < 2; time += 1) {
      expectAborted(await second.sweep(), 'NoLivenessSources', 'a sweep by an instance without sources')
    }
    await expectEntries(store, keys.length, 'nothing was deleted')
    await second.close()
    await store.close()
    await factory.teardown()
  }
})

const broken = new Error('the source is down')
const failures: Readonly<Record<string, LivenessSource>> = {
  'throws at once': {
    name: 'broken',
    live: () => {
      throw broken
    }
  },
  'rejects at once': { name: 'broken', live: () => Promise.reject(broken) },
  'yields some keys and then throws': {
    name: 'broken',
    async *live() {
      yield `blake3:${'ab'.repeat(32)}`
      throw broken
    }
  },
  'yields a key that is none': { name: 'broken', live: () => ['blake3:typo'] },
  'yields a key of another algorithm': { name: 'broken', live: () => [`sha256:${'ab'.repeat(32)}`] },
  'yields something that is no string': { name: 'broken', live: () => [7 as unknown as string] },
  'answers nothing to iterate': { name: 'broken', live: () => 7 as unknown as string[] },
  'stays silent past its time': { name: 'broken', live: () => new Promise<string[]>(() => {}), timeoutMs: 20 }
}

// O03
/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const failedSource = row({
  name: 'sweep_with_a_failed_protect_callback_aborts_and_deletes_nothing',
  statement:
    'A source that throws, hangs or answers what is no key aborts the sweep as data: nothing staged, nothing deleted, lease free.',
  stamps: [
    'docs/spec/sweep.md#liveness-sources',
    'docs/spec/sweep.md#invariants',
    'docs/adr/005-windows-and-sweeps.md#decision'
  ],
  invariant: 'INV-4',
  cases: ['O03'],
  run: over(async (store, factory) => {
    const keys = await fill(store, factory)
    store.protect(sourceOver([], 'healthy before'))
    for (const [how, source] of Object.entries(failures)) {
      const registration = store.protect(source)
      const after = store.protect(sourceOver([], 'healthy after'))
      const report = await store.sweep()
      expectAborted(report, 'ProtectFailed', `a source that ${how}`)
      equal(report.source, 'broken', `a source that ${how} is named`)
      holds(report.cause !== undefined, `a source that ${how}: the report has the cause`)
      registration.remove()
      after.remove()
    }
    await expectEntries(store, keys.length, 'nothing was deleted')
    equal((await store.usage()).window, 0, 'nothing was staged')
    equal((await collect(store)).deleted, keys.length, 'a later sweep with healthy sources works')
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/sweep.md#invariants
 */
const failedQuestion = row({
  name: 'a_source_that_fails_when_asked_about_candidates_stops_the_sweep',
  statement:
    'A source that answers by batch and fails, or names a key that is none, ends the sweep; nothing is deleted after the doubt.',
  stamps: ['docs/spec/sweep.md#liveness-sources', 'docs/spec/sweep.md#invariants'],
  invariant: 'INV-4',
  cases: ['O03'],
  run: over(async (store, factory) => {
    const keys = await fill(store, factory)
    const answers: Readonly<Record<string, () => Promise<string[]>>> = {
      rejects: () => Promise.reject(broken),
      throws: () => {
        throw broken
      },
      'answers nothing to iterate': () => Promise.resolve(undefined as unknown as string[]),
      'answers a key that is none': () => Promise.resolve(['typo'])
    }
    for (const [how, isLive] of Object.entries(answers)) {
      const registration = store.protect({ name: 'asked', isLive })
      for (let time = 0; time < 2; time += 1) {
        const report = await store.sweep()
        equal(
          { aborted: report.aborted, source: report.source },
          { aborted: 'ProtectFailed', source: 'asked' },
          `a source that ${how}`
        )
        equal(countsOf(report).deleted, 0, `a source that ${how} deletes nothing`)
      }
      registration.remove()
    }
    await expectEntries(store, keys.length, 'nothing was deleted')
    store.protect(sourceOver([]))
    equal((await collect(store)).deleted, keys.length, 'a later sweep with healthy sources works')
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/spec/sweep.md#invariants
 */
const cancelledSweep = row({
  name: 'a_cancelled_sweep_says_exactly_what_it_did',
  statement: 'A sweep cancelled before it began, or while its sources are read, does nothing and says so.',
  stamps: ['docs/spec/sweep.md#report', 'docs/spec/sweep.md#invariants'],
  invariant: 'INV-4',
  run: over(async (store, factory) => {
    const keys = await fill(store, factory)
    const controller = new AbortController()
    const live = () => {
      controller.abort(new Error('enough'))
      return []
    }
    store.protect({ name: 'cancelling', live })
    const report = await store.sweep({ signal: controller.signal })
    expectAborted(report, 'Cancelled', 'a sweep cancelled while its sources are read')
    await expectEntries(store, keys.length, 'nothing was deleted')
    equal((await store.usage()).window, 0, 'nothing was staged')
    equal((await collect(store)).deleted, keys.length, 'the lease is free and a later sweep works')
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/adr/012-sweep-report-and-forms.md#decision
 */
const dryRun = row({
  name: 'a_dry_run_equals_the_next_staging',
  statement: 'A dry run changes nothing and reports what the next sweep stages.',
  stamps: ['docs/spec/sweep.md#report', 'docs/adr/012-sweep-report-and-forms.md#decision'],
  invariant: 'INV-4',
  run: over(async (store, factory) => {
    const keys = await fill(store, factory)
    // Kept to the end: what nobody can reach any more is let go.
    const pinned = await store.put(bytesOf(10, 99))
    store.protect(sourceOver(keys.slice(0, 1)))
    await releasesArrived(store)
    const before = await store.usage()
    const dry = await store.sweep({ dryRun: true })
    const staged = { scanned: keys.length + 1, live: 2, candidatesStaged: keys.length - 1 }
    const seen = ({ scanned, live, candidatesStaged }: typeof dry) => ({ scanned, live, candidatesStaged })
    equal(seen(dry), staged, 'the dry run reports what a staging would')
    equal({ deleted: dry.deleted, bytes: dry.bytesDeleted }, { deleted: 0, bytes: 0 }, 'the dry run deletes nothing')
    equal(await store.usage(), before, 'the dry run changes nothing')
    const real = await store.sweep()
    equal(seen(real), staged, 'the next staging is what the dry run said')
    await pinned.release()
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#report
 */
const bounded = row({
  name: 'a_sweep_deletes_no_more_than_it_was_allowed_to',
  statement:
    '`maxDeletes` bounds the removals of a sweep; the rest waits for the next, and nothing is lost or counted twice.',
  stamps: ['docs/spec/sweep.md#report'],
  invariant: 'INV-4',
  run: over(async (store, factory) => {
    const keys = await fill(store, factory)
    store.protect(sourceOver([]))
    let deleted = 0
    for (let time = 0; time < 2 * keys.length && deleted < keys.length; time += 1) {
      const report = await store.sweep({ maxDeletes: 2 })
      equal(report.aborted, undefined, 'a bounded sweep ends well')
      holds(report.deleted <= 2, 'a sweep keeps its bound', `${report.deleted} deleted`)
      deleted += report.deleted
    }
    equal(deleted, keys.length, 'bounded sweeps take everything in the end, each entry once')
    await expectEntries(store, 0, 'the pool is empty')
  })
})

export const sweepAbortRows = [noSources, othersSource, failedSource, failedQuestion, cancelledSweep, dryRun, bounded]

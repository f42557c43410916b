/** INV-9 and INV-4 for many at once: one damaged entry hides no other, and each record that repair judges has an answer of its own. */
import type { BlobKey } from '@alkblobs/core'
import { bytesOf, tierLengths } from '../content.js'
import { equal, present, sameBytes } from '../expect.js'
import { type Damage, oracleOf, type StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { putReleased } from '../sweeping.js'

const DAMAGES: readonly Damage[] = ['flip', 'truncate', 'empty', 'directory', 'remove']

const largeLength = (factory: StoreFactory) => tierLengths(factory).at(-1) ?? 1

/**
 * Contract stamp: docs/spec/store-api.md#verify
 * Contract stamp: docs/spec/store-api.md#putting
 */
const hidesNone = row({
  name: 'a_damaged_entry_hides_no_other_from_verify',
  statement:
    'verify looks at every entry whatever it found at others, names each damaged one, and calls the pool clean once puts have healed them.',
  stamps: ['docs/spec/store-api.md#verify', 'docs/spec/store-api.md#putting'],
  invariant: 'INV-9',
  needs: ['medium', 'corrupt'],
  cases: ['O42'],
  run: over(async (store, factory) => {
    const contents = new Map<BlobKey, Uint8Array>()
    const damaged = new Map<BlobKey, Damage>()
    // Two sound entries for each damage, so that there is something to hide on either side.
    for (let seed = 0; seed < 3 * DAMAGES.length; seed += 1) {
      const bytes = bytesOf(largeLength(factory), seed)
      const { key } = await putReleased(store, bytes)
      contents.set(key, bytes)
      const how = seed % 3 === 1 ? DAMAGES[(seed - 1) / 3] : undefined
      if (how === undefined) continue
      damaged.set(key, how)
      await oracleOf(factory, store).corrupt?.(key, how)
    }
    const report = await store.verify()
    equal(report.entries, contents.size, 'every entry was looked at')
    const named = [...report.corrupt, ...report.dangling].map(({ key }) => key).sort()
    equal(named, [...damaged.keys()].sort(), 'every damaged entry is named, and no other')
    for (const key of damaged.keys()) {
      const bytes = present(contents.get(key), 'the content')
      // Only reading shows a flipped byte, so that put must be asked to read.
      await (await store.put(bytes, { verify: damaged.get(key) === 'flip' })).release()
      sameBytes(await present(await store.get(key), 'the entry is there').bytes(), bytes, 'it is whole again')
    }
    equal((await store.verify()).clean, true, 'the healed pool is clean')
  })
})

/**
 * Sources whose first asking hears that nothing is referenced and whose second, asked later, that everything is. Both answers
 * wait for each other, and the newer comes a step before the older.
 */
function contradicting(live: () => Iterable<string>) {
  const waiting: (() => void)[] = []
  const late = setTimeout(() => answer(), 2_000)
  const answer = () => {
    clearTimeout(late)
    for (const settle of waiting.splice(0).reverse()) settle()
  }
  let asked = 0
  const enumerated = {
    name: 'enumerated',
    live: () => {
      asked += 1
      return asked === 1 ? [] : live()
    }
  }
  const last = {
    name: 'last',
    live: () =>
      new Promise<string[]>(resolve => {
        waiting.push(() => resolve([]))
        // In a turn of its own, in which both are waited for alike.
        if (waiting.length === 2) setImmediate(answer)
      })
  }
  return { enumerated, last, asked: () => asked }
}

/**
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 * Contract stamp: docs/spec/store-api.md#verify
 */
const ownAnswer = row({
  name: 'an_older_answer_never_stands_in_for_a_newer_one',
  statement:
    'Records that repair judges at the same time are judged each by what the sources said when they were asked about it, not by an older answer that arrives later.',
  stamps: ['docs/spec/sweep.md#liveness-sources', 'docs/spec/store-api.md#verify'],
  invariant: 'INV-4',
  needs: ['medium', 'corrupt'],
  cases: ['O01'],
  run: over(async (store, factory) => {
    const keys: BlobKey[] = []
    for (let seed = 0; seed < 2; seed += 1) {
      const { key } = await putReleased(store, bytesOf(largeLength(factory), 60 + seed))
      keys.push(key)
      await oracleOf(factory, store).corrupt?.(key, 'remove')
    }
    const { enumerated, last, asked } = contradicting(() => keys)
    store.protect(enumerated)
    store.protect(last)
    const report = await store.verify({ repair: true })
    equal(asked(), 2, 'the sources are asked for each record')
    equal(report.repaired.length, 1, "the record that was asked about first is nobody's")
    equal(
      report.kept.map(({ reason }) => reason),
      ['live'],
      'the record whose own answer says live stays'
    )
  })
})

export const repairingRows = [hidesNone, ownAnswer]

/** INV-9: what the medium damaged is reported, never returned, and healed by the next put of the bytes. */

import type { Store } from '@alkblobs/core'
import { Corrupt } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { codeOf, equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import { type Damage, oracleOf, type StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { iterate, PUT_PATHS } from '../sources.js'
import { expectEntries, putReleased, sourceOver } from '../sweeping.js'

const largeDamages: readonly Damage[] = ['flip', 'truncate', 'empty', 'remove', 'directory']
const inlineDamages: readonly Damage[] = ['flip', 'truncate', 'empty']

type Damaging = readonly (readonly [length: number, how: Damage])[]

/** What can happen to a body of the kv tier. */
const ofInline = (factory: StoreFactory): Damaging =>
  inlineDamages.map(how => [tierLengths(factory)[0] ?? 1, how] as const)

/** What can happen to a body of the large tier. */
const ofLarge = (factory: StoreFactory): Damaging =>
  largeDamages.map(how => [tierLengths(factory).at(-1) ?? 1, how] as const)

/** A put whose entry was damaged behind the store's back. */
async function damaged(store: Store, factory: StoreFactory, length: number, how: Damage, seed: number) {
  const bytes = bytesOf(length, seed)
  const receipt = await store.put(bytes)
  await oracleOf(factory, store).corrupt?.(receipt.key, how)
  return { bytes, receipt, key: receipt.key }
}

/** Reads all of a blob and answers how that ended. */
async function readAll(blob: AsyncIterable<Uint8Array>) {
  const parts: Uint8Array[] = []
  const end = await settled(
    (async () => {
      for await (const chunk of blob) parts.push(chunk)
    })()
  )
  return { error: 'error' in end ? end.error : undefined, seen: Buffer.concat(parts) }
}

async function expectReported(store: Store, factory: StoreFactory, damages: Damaging): Promise<void> {
  for (const [at, [length, how]] of damages.entries()) {
    const what = `a body of ${length} bytes with damage "${how}"`
    const { bytes, key } = await damaged(store, factory, length, how, at)
    await refuses(async () => await present(await store.get(key), what).bytes(), Corrupt, `bytes() of ${what}`)
    const { error, seen } = await readAll(present(await store.get(key), what))
    equal(codeOf(error), Corrupt, `the stream of ${what} errors`)
    holds(seen.length < bytes.length, `the stream of ${what} withholds its end`, `${seen.length} bytes`)
    const range = await settled(
      present(await store.get(key), what)
        .slice(length - 2, length)
        .bytes()
    )
    if (how === 'flip') holds('value' in range, 'ranges are not verified')
    else equal('error' in range ? codeOf(range.error) : 'success', Corrupt, `a range past the damage of ${what}`)
  }
}

// O42
/**
 * Contract stamp: docs/spec/store-api.md#verification
 * Contract stamp: docs/adr/006-read-path.md#decision
 */
const reported = row({
  name: 'damaged_bytes_are_reported_never_returned',
  statement:
    'A flipped byte, a truncated, empty or missing body is a corruption error before a read ends, for bytes, streams and short ranges.',
  stamps: ['docs/spec/store-api.md#verification', 'docs/adr/006-read-path.md#decision'],
  invariant: 'INV-9',
  needs: ['medium', 'corrupt'],
  cases: ['O42'],
  run: over((store, factory) => expectReported(store, factory, ofLarge(factory)))
})

/**
 * Contract stamp: docs/spec/store-api.md#verification
 * Contract stamp: docs/adr/006-read-path.md#decision
 */
const reportedInline = row({
  name: 'damaged_inline_bytes_are_reported_never_returned',
  statement: 'A flipped byte, a truncated or empty inline body is a corruption error before a read ends.',
  stamps: ['docs/spec/store-api.md#verification', 'docs/adr/006-read-path.md#decision'],
  invariant: 'INV-9',
  needs: ['medium', 'corrupt-inline'],
  cases: ['O42'],
  run: over((store, factory) => expectReported(store, factory, ofInline(factory)))
})

async function expectHealed(store: Store, factory: StoreFactory, damages: Damaging): Promise<void> {
  const healing = damages.filter(([, how]) => how !== 'flip')
  for (const [at, [length, how]] of healing.entries()) {
    for (const [nth, path] of PUT_PATHS.entries()) {
      const what = `an entry of ${length} bytes with damage "${how}", put again as ${path.name}`
      const { bytes, key, receipt } = await damaged(store, factory, length, how, 100 + at * 10 + nth)
      await receipt.release()
      const again = await path.put(store, bytes)
      equal(again.key, key, `${what}: its key`)
      const blob = present(await store.get(key), `${what} is there`)
      const end = await settled(blob.bytes())
      if ('error' in end) equal(end.error, 'healed', what)
      else sameBytes(end.value, bytes, `${what} is whole`)
      await again.release()
    }
  }
  equal((await store.usage()).stages, 0, 'healing leaves no stage')
  const report = await store.verify()
  equal(report.clean, true, 'a pool that was healed is clean')
}

// O42
/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const healed = row({
  name: 'a_put_heals_a_broken_entry_from_bytes_and_from_a_stream',
  statement:
    'A put of content whose entry is evidently broken stores the bytes again, from a stream too, and is not "already there".',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-9',
  needs: ['medium', 'corrupt'],
  cases: ['O42'],
  run: over((store, factory) => expectHealed(store, factory, ofLarge(factory)))
})

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const healedInline = row({
  name: 'a_put_heals_a_broken_inline_entry',
  statement: 'A put of content whose inline body has the wrong length stores the bytes again.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-9',
  needs: ['medium', 'corrupt-inline'],
  cases: ['O42'],
  run: over((store, factory) => expectHealed(store, factory, ofInline(factory)))
})

// O42
/**
 * Contract stamp: docs/spec/store-api.md#verification
 * Contract stamp: docs/spec/store-api.md#putting
 */
const healedOnRequest = row({
  name: 'a_put_that_is_asked_to_verify_heals_what_only_reading_shows',
  statement:
    'Bytes that are wrong and as many as they should be are taken for "already there", and replaced where the put was asked to verify.',
  stamps: ['docs/spec/store-api.md#verification', 'docs/spec/store-api.md#putting'],
  invariant: 'INV-9',
  needs: ['medium'],
  cases: ['O42'],
  run: over(async (store, factory) => {
    const damages = [...ofInline(factory), ...ofLarge(factory)].filter(([, how]) => how === 'flip')
    const sound = await store.put('sound', { verify: true })
    equal((await store.put('sound', { verify: true })).created, false, 'a sound entry is found, not replaced')
    await sound.release()
    for (const [at, [length, how]] of damages.entries()) {
      for (const [nth, path] of PUT_PATHS.entries()) {
        const what = `a body of ${length} bytes with a flipped byte, put again as ${path.name}`
        const { bytes, key } = await damaged(store, factory, length, how, 500 + at * 10 + nth)
        equal((await path.put(store, bytes)).created, false, `${what}, unasked`)
        equal((await path.put(store, bytes, { verify: true })).key, key, `${what}, asked to verify`)
        sameBytes(await present(await store.get(key), what).bytes(), bytes, `${what} is whole`)
      }
    }
    equal((await store.usage()).stages, 0, 'healing leaves no stage')
    equal((await store.verify()).clean, true, 'a pool that was healed is clean')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#verify
 */
const verifyReports = row({
  name: 'verify_names_what_is_corrupt_and_what_is_gone',
  statement: 'verify re-derives every entry, names the corrupt and the dangling ones, and calls a sound pool clean.',
  stamps: ['docs/spec/store-api.md#verify'],
  invariant: 'INV-9',
  needs: ['medium', 'corrupt'],
  cases: ['O42'],
  run: over(async (store, factory) => {
    const lengths = tierLengths(factory)
    let bytes = 0
    for (const length of lengths) {
      for (let at = 0; at < 3; at += 1) bytes += (await putReleased(store, bytesOf(length, at))).length
    }
    const sound = await store.verify()
    equal(
      [sound.clean, sound.entries, sound.bytes],
      [true, 3 * lengths.length, bytes],
      'a sound pool is clean, and was read whole'
    )
    const large = lengths.at(-1) ?? 1
    const flipped = await damaged(store, factory, large, 'flip', 201)
    const short = await damaged(store, factory, large, 'truncate', 202)
    const gone = await damaged(store, factory, large, 'remove', 203)
    const report = await store.verify()
    equal(report.clean, false, 'a damaged pool is not clean')
    equal(report.corrupt.map(({ key }) => key).sort(), [flipped.key, short.key].sort(), 'the corrupt entries are named')
    equal(
      report.dangling.map(({ key }) => key),
      [gone.key],
      'the entry without bytes is named'
    )
    await expectEntries(store, 3 * lengths.length + 3, 'verify changes nothing unless it is told to repair')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#verify
 * Contract stamp: docs/spec/sweep.md#invariants
 */
const repairSpares = row({
  name: 'repair_removes_dangling_records_but_never_pinned_or_live_ones',
  statement:
    'Repair ends records without bytes that nobody protects, reports those that somebody does, and removes no corrupt entry.',
  stamps: ['docs/spec/store-api.md#verify', 'docs/spec/sweep.md#invariants'],
  invariant: 'INV-4',
  needs: ['medium', 'corrupt'],
  run: over(async (store, factory) => {
    const large = tierLengths(factory).at(-1) ?? 1
    const loose = await damaged(store, factory, large, 'remove', 1)
    const pinned = await damaged(store, factory, large, 'remove', 2)
    const live = await damaged(store, factory, large, 'remove', 3)
    const corrupt = await damaged(store, factory, large, 'flip', 4)
    for (const { receipt } of [loose, live, corrupt]) await receipt.release()
    store.protect(sourceOver([live.key]))
    const report = await store.verify({ repair: true })
    equal(await store.has(loose.key), false, 'an unprotected record without bytes is ended')
    for (const { key } of [pinned, live, corrupt])
      equal(await store.has(key), true, 'a protected or corrupt entry stays')
    const kept = new Map(report.kept.map(({ key, reason }) => [key as string, reason as string]))
    equal([kept.get(pinned.key), kept.get(live.key)], ['pinned', 'live'], 'what is kept is reported with its reason')
    for (const { key, bytes } of [pinned, live]) {
      await store.put(iterate([bytes]))
      sameBytes(await present(await store.get(key), 'it is there').bytes(), bytes, 'the next put heals what was kept')
    }
  })
})

export const verificationRows = [
  reported,
  reportedInline,
  healed,
  healedInline,
  healedOnRequest,
  verifyReports,
  repairSpares
]

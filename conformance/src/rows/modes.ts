/** The length rule of each mode, and what `stat` and bad keys answer. */

import type { Store } from '@alkblobs/core'
import { InvalidKey, TooLarge } from '../codes.js'
import { bytesOf, interestingSizes, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes } from '../expect.js'
import { PRODUCERS } from '../failing.js'
import { over, row } from '../row.js'
import { iterate, PUT_PATHS } from '../sources.js'
import { expectEntries, expectNoResidue } from '../sweeping.js'
import { tapped, watch } from '../tap.js'

/**
 * Contract stamp: docs/spec/store-api.md#modes-and-thresholds
 * Contract stamp: docs/adr/011-modes.md#decision
 */
const memOnly = row({
  name: 'mem_only_mode_accepts_every_length_on_both_put_paths',
  statement: 'A store without a threshold takes content of any length, known beforehand or not.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/adr/011-modes.md#decision'],
  invariant: 'INV-7',
  needs: ['mem-only'],
  run: over(async store => {
    equal(store.mode, 'mem-only', 'the store tells its mode')
    for (const { length } of [...interestingSizes(128 * 1024), { length: 9 * 1024 * 1024 }]) {
      const bytes = bytesOf(length, 2)
      for (const path of PUT_PATHS) {
        const { key } = await path.put(store, bytes)
        const blob = present(await store.get(key), `${length} bytes put as ${path.name} are there`)
        sameBytes(await blob.bytes(), bytes, `${length} bytes put as ${path.name}`)
      }
    }
  })
})

/** Finds the longest length a kv-only store accepts: known-length rejections read nothing, so probing costs nothing. */
async function discoverThreshold(store: Store): Promise<number> {
  const refused = async (length: number) => {
    const script = { bytes: new Uint8Array(0), chunkLength: 1, atEnd: () => {} }
    const producer = present(PRODUCERS['an async iterable']?.(script), 'a producer')
    const error = await refuses(
      () => store.put(producer.content, { length }),
      () => true,
      'an empty source of a declared length'
    )
    if ((error as { code?: string }).code !== TooLarge) return false
    equal(producer.pulls(), 0, 'a known length over the threshold is refused before a byte is read')
    return true
  }
  let accepted = 0
  let rejected = 2 ** 40
  holds(await refused(rejected), 'a kv-only store refuses a length no catalog holds')
  while (rejected - accepted > 1) {
    const middle = Math.floor((accepted + rejected) / 2)
    if (await refused(middle)) rejected = middle
    else accepted = middle
  }
  return accepted
}

/**
 * Contract stamp: docs/spec/store-api.md#modes-and-thresholds
 * Contract stamp: docs/adr/011-modes.md#decision
 */
const kvOnly = row({
  name: 'kv_only_mode_rejects_over_threshold_puts_at_put_time',
  statement:
    'A store without a large tier refuses what is longer than its threshold: unread where the length is known, at the threshold where not.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/adr/011-modes.md#decision'],
  invariant: 'INV-8',
  needs: ['kv-only'],
  run: over(async store => {
    equal(store.mode, 'kv-only', 'the store tells its mode')
    const threshold = await discoverThreshold(store)
    equal(threshold, store.threshold, 'the threshold in force is the one the store tells')
    holds(threshold <= 8 * 1024 * 1024, 'the threshold of the column can be materialised', `${threshold}`)
    const over = bytesOf(threshold + 1, 1)
    await refuses(() => store.put(over), TooLarge, 'bytes one over the threshold')
    await refuses(() => store.put(iterate([over]), { length: over.length }), TooLarge, 'a stream declared one over')
    await refuses(() => store.put(iterate([over])), TooLarge, 'a stream that turns out one over')
    const endless = { bytes: bytesOf(threshold + 50_000, 1), chunkLength: 1024, atEnd: () => {} }
    const producer = present(PRODUCERS['an async iterable']?.(endless), 'a producer')
    await refuses(() => store.put(producer.content), TooLarge, 'a stream far over the threshold')
    holds(producer.pulls() <= threshold / 1024 + 2, 'it is stopped at the threshold', `${producer.pulls()} pulls`)
    const writer = store.writer()
    await refuses(
      async () => {
        await writer.write(over)
        return await writer.commit()
      },
      TooLarge,
      'a writer one over the threshold'
    )
    await writer.discard()
    await expectEntries(store, 0, 'nothing over the threshold is stored')
    await expectNoResidue(store, 'nothing over the threshold is left')
    for (const length of [threshold - 1, threshold]) {
      for (const path of PUT_PATHS) {
        const { key } = await path.put(store, bytesOf(length, 5))
        equal(
          present(await store.stat(key), 'it is there').length,
          length,
          `${length} bytes as ${path.name} are accepted`
        )
      }
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const statOnly = row({
  name: 'stat_reports_len_and_algorithm_without_fetching_content',
  statement: 'stat, has and hasMany answer from the record alone; no body is read.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-6',
  async run(factory) {
    let fetched = 0
    const countRead = (operation: string) => {
      if (operation === 'read') fetched += 1
    }
    const count = (definition: Parameters<typeof tapped>[0]) =>
      tapped(watch({ before: countRead })(definition), {
        bodies: inner => ({
          read(...args: Parameters<typeof inner.read>) {
            fetched += 1
            return inner.read(...args)
          }
        })
      })
    const store = await factory.open({ wrap: count })
    for (const length of [0, 1, ...tierLengths(factory)]) {
      const { key } = await store.put(bytesOf(length, 88))
      fetched = 0
      const stat = present(await store.stat(key), 'the entry has a record')
      equal({ key: stat.key, length: stat.length }, { key, length }, 'stat tells key and length')
      equal(stat.algorithm, store.algorithm, 'stat tells the algorithm')
      equal(await store.has(key), true, 'has')
      equal([...(await store.hasMany([key])).values()], [true], 'hasMany')
      equal(fetched, 0, 'no content was fetched to answer')
    }
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/store-api.md#errors
 */
const badKeys = row({
  name: 'a_malformed_key_is_refused_everywhere_and_an_absent_one_is_an_answer',
  statement:
    'Every call that takes a key refuses what is no key of the pool, and answers the absent one without an error.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-8',
  run: over(async store => {
    const digest = 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262'
    const calls: Readonly<Record<string, (key: string) => unknown>> = {
      get: key => store.get(key),
      stat: key => store.stat(key),
      has: key => store.has(key),
      hasMany: key => store.hasMany([key]),
      delete: key => store.delete(key),
      deleteMany: key => store.deleteMany([key]),
      pin: key => store.pin(key),
      why: key => store.why(key),
      'list after': async key => {
        for await (const _ of store.list({ after: key }));
      }
    }
    const malformed: unknown[] = [
      '',
      'blake3:',
      digest,
      `blake3:${digest.toUpperCase()}`,
      `blake3:${digest}0`,
      `blake3:${digest.slice(1)}`,
      `md5:${digest}`,
      ` blake3:${digest}`,
      `blake3:${digest}\n`,
      '../../etc/passwd',
      `sha256:${digest}`,
      undefined,
      null,
      7,
      {}
    ]
    for (const [name, call] of Object.entries(calls)) {
      for (const key of malformed) {
        if (name === 'list after' && key === undefined) continue
        await refuses(() => call(key as string), InvalidKey, `${name}(${JSON.stringify(key)})`)
      }
    }
    const absent = `blake3:${digest}`
    equal(await store.get(absent), undefined, 'get of the absent')
    equal(await store.stat(absent), undefined, 'stat of the absent')
    equal(await store.has(absent), false, 'has of the absent')
    equal([...(await store.hasMany([absent])).values()], [false], 'hasMany of the absent')
    equal(await store.pin(absent), undefined, 'pin of the absent')
    equal((await store.why(absent)).verdict, 'absent', 'why of the absent')
  })
})

export const modeRows = [memOnly, kvOnly, statOnly, badKeys]

/** INV-1 and INV-9 for bodies that are large objects: windows over pages of the server, and objects that are not what their row says. */
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import { Corrupt } from '../codes.js'
import { bytesOf } from '../content.js'
import { codeOf, equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import { type Damage, oracleOf } from '../factory.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'

/** What one row of the server's table of large objects holds. */
const PAGE_LENGTH = 2048

/** Everything that could be miscounted at one position. */
const around = (position: number) => [position - 1, position, position + 1]

/**
 * Contract stamp: docs/spec/store-api.md#ranges
 * Contract stamp: docs/spec/store-api.md#verification
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const windows = row({
  name: 'lo_windows_read_across_window_boundaries_and_a_short_body_fails_cleanly',
  statement:
    'Ranges over the edges of windows and pages are exact and clamped; a row that claims more bytes than its object has is corruption, past them.',
  stamps: [
    'docs/spec/store-api.md#ranges',
    'docs/spec/store-api.md#verification',
    'docs/spec/engine-contract.md#body-store'
  ],
  invariant: 'INV-1',
  needs: ['dual-tier', 'large-objects', 'medium', 'corrupt'],
  run: over(async (store, factory) => {
    const size = 2 * WINDOW_LENGTH + PAGE_LENGTH + 77
    const bytes = bytesOf(size, 33)
    const { key } = await store.put(iterate([bytes]))
    const blob = present(await store.get(key), 'the entry is there')
    const points = [0, ...around(PAGE_LENGTH), ...around(WINDOW_LENGTH), ...around(size), 2 ** 32 + 5, 2 ** 53 - 1]
    for (const start of points) {
      for (const end of points) {
        sameBytes(await blob.slice(start, end).bytes(), bytes.slice(start, end), `${start} to ${end} of ${size}`)
      }
    }
    let longest = 0
    for await (const chunk of blob) longest = Math.max(longest, chunk.length)
    holds(longest <= WINDOW_LENGTH, 'a stream comes in windows of bounded size', `${longest} bytes in one chunk`)
    for (const how of ['truncate', 'empty'] as const satisfies readonly Damage[]) {
      await oracleOf(factory, store).corrupt?.(key, how)
      const short = present(await store.get(key), 'the row is there')
      await refuses(() => short.bytes(), Corrupt, `a whole read, damage "${how}"`)
      for (const [start, end] of [
        [size - 2, size],
        [0, size],
        [WINDOW_LENGTH - 1, 2 ** 53 - 1]
      ]) {
        const read = await settled(short.slice(start, end).bytes())
        equal('error' in read ? codeOf(read.error) : 'success', Corrupt, `${start} to ${end}, damage "${how}"`)
      }
      const before = await settled(short.slice(0, 10).bytes())
      if (how === 'truncate') holds('value' in before, 'a range before the missing byte can be read')
    }
    equal((await store.put(iterate([bytes]))).key, key, 'the content is put again')
    sameBytes(await present(await store.get(key), 'the entry is there').bytes(), bytes, 'and is whole')
    await store.verify({ repair: true })
    equal((await oracleOf(factory, store).counts()).stages, 0, 'no object without a row')
  })
})

export const largeObjectRows = [windows]

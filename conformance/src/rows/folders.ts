import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes } from '../expect.js'
import { oracleOf } from '../factory.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'

// O40
/**
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const links = row({
  name: 'links_that_lead_out_of_the_root_are_not_followed',
  statement:
    'A folder that was replaced by a link out of the root is refused with a typed error; nothing is written behind it.',
  stamps: ['docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-8',
  needs: ['dual-tier', 'root', 'medium'],
  cases: ['O40'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    const large = tierLengths(factory).at(-1) ?? 1
    await store.put(bytesOf(large, 1))
    const outside = present(await oracle.linkOut?.(), 'links')
    const typed = (error: unknown) => (error as { code?: unknown }).code === 'ERR_BLOB_ENGINE'
    await refuses(() => store.put(bytesOf(large, 2)), typed, 'a put whose folder is a link')
    equal(await outside(), 0, 'nothing was written outside the root')
    equal((await oracle.counts()).stages, 0, 'nothing is left of the put')
  })
})

// O44
/**
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const disappearing = row({
  name: 'a_folder_that_disappears_under_a_put_costs_nothing',
  statement: 'While somebody removes empty folders under the root, every put resolves and every entry is whole.',
  stamps: ['docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-11',
  needs: ['dual-tier', 'root', 'medium'],
  cases: ['O44'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    const large = tierLengths(factory).at(-1) ?? 1
    let running = true
    let rounds = 0
    const cleaning = (async () => {
      while (running) {
        await oracle.removeEmptyFolders?.()
        rounds += 1
        await new Promise<void>(done => setImmediate(done))
      }
    })()
    const keys: string[] = []
    for (let at = 0; at < 150; at += 30) {
      const batch = Array.from({ length: 30 }, (_, nth) => store.put(iterate([bytesOf(large, at + nth)])))
      keys.push(...(await Promise.all(batch)).map(({ key }) => key))
    }
    running = false
    await cleaning
    holds(rounds > 1, 'folders were removed while puts ran', `${rounds} rounds`)
    for (const [at, key] of keys.entries()) {
      sameBytes(await present(await store.get(key), 'it is there').bytes(), bytesOf(large, at), 'it is whole')
    }
  })
})

export const folderRows = [links, disappearing]

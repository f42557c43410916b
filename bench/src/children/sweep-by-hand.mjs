/** The same look by hand, as a process of its own: a flat set, and pages of keys as one text each. */
import Database from 'better-sqlite3'
import { answer, argument, peakGrowth } from '../child.mjs'
import { DIGEST_LENGTH, keysIn } from '../live-keys.mjs'
import { flatSet } from '../peers/flat-set.mjs'

const PAGE = `
  SELECT group_concat(hex(key), '') FROM (SELECT key FROM entries WHERE key > ? ORDER BY key LIMIT 1000)`

const { file, keys, entries } = argument()
const db = new Database(file, { readonly: true })
const page = db.prepare(PAGE).pluck()
page.get(Buffer.alloc(DIGEST_LENGTH, 255))

function look() {
  const live = flatSet(entries)
  for (const key of keysIn(keys)) live.addHex(key.slice(7))
  let found = 0
  for (let after = Buffer.alloc(0); ; ) {
    const digests = Buffer.from(page.get(after) ?? '', 'hex')
    for (let at = 0; at < digests.length; at += DIGEST_LENGTH) if (live.hasAt(digests, at)) found++
    if (digests.length < 1000 * DIGEST_LENGTH) return found
    after = digests.subarray(-DIGEST_LENGTH)
  }
}

let found = 0
let milliseconds = 0
const peakMiB = await peakGrowth(async () => {
  const from = performance.now()
  found = look()
  milliseconds = performance.now() - from
})
db.close()
if (found !== entries) throw new Error(`a look by hand found ${found} of ${entries} entries live`)
answer({ figure: (milliseconds * 1000) / entries, peakMiB })

// Writes entries past the store, by the hundred thousand: rows as its own puts make them, of contents nobody reads.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { connect, given, openPool, say } from './pool.mjs'

const { folder, file, count } = given
const BATCH = 50_000

// The pool must be there: one put, taken back.
const store = await openPool(folder)
const receipt = await store.put('first')
await receipt.release()
await store.delete(receipt.key)
await store.close()

const db = connect(folder)
db.pragma('synchronous = OFF')
const body = db.prepare('INSERT INTO bodies (body) VALUES (?)')
const entry = db.prepare('INSERT INTO entries (key, length, id) VALUES (?, 4, ?)')
const output = createWriteStream(file)
for (let from = 0; from < count; from += BATCH) {
  const lines = []
  db.exec('BEGIN')
  for (let n = from; n < Math.min(count, from + BATCH); n++) {
    const digest = createHash('sha256').update(`row ${n}`).digest()
    entry.run(digest, body.run(Buffer.from('body')).lastInsertRowid)
    lines.push(`blake3:${digest.toString('hex')}\n`)
  }
  db.exec('COMMIT')
  output.write(lines.join(''))
}
output.end()
await once(output, 'finish')
db.close()
say({ rows: count })

/** The same look by hand, as a process of its own: keys by binary COPY into a temporary table, or the table that is there; one anti-join. */
import { closeSync, openSync, readSync } from 'node:fs'
import { answer, argument, peakGrowth } from '../child.mjs'
import { DIGEST_LENGTH } from '../live-keys.mjs'
import { openClient } from '../peers/pg-raw.mjs'

const { server, schema, keys, table, entries } = argument()
const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const ROW_HEAD = Buffer.from('000100000020', 'hex')
const ROWS = 16 * 1024
const { sql, close } = await openClient(server, "SET work_mem = '256MB'; SET jit = off")

/** Raw digests from the file, framed for COPY; one buffer for all of it. */
function* framed() {
  const digests = Buffer.allocUnsafeSlow(ROWS * DIGEST_LENGTH)
  const rows = Buffer.allocUnsafeSlow(ROWS * (ROW_HEAD.length + DIGEST_LENGTH))
  const descriptor = openSync(keys, 'r')
  for (;;) {
    const length = readSync(descriptor, digests, 0, digests.length)
    if (length === 0) break
    let to = 0
    for (let at = 0; at < length; at += DIGEST_LENGTH) {
      to += ROW_HEAD.copy(rows, to)
      to += digests.copy(rows, to, at, at + DIGEST_LENGTH)
    }
    yield rows.subarray(0, to)
  }
  closeSync(descriptor)
}

async function load() {
  await sql.unsafe('CREATE TEMP TABLE live (key bytea NOT NULL)')
  const stream = await sql.unsafe('COPY live (key) FROM STDIN (FORMAT binary)').writable()
  const write = chunk => new Promise((resolve, reject) => stream.write(chunk, e => (e ? reject(e) : resolve())))
  await write(HEAD)
  for (const chunk of framed()) await write(chunk)
  await new Promise((resolve, reject) =>
    stream.once('error', reject).once('finish', resolve).end(Buffer.from('ffff', 'hex'))
  )
  await sql.unsafe('ANALYZE live')
}

let dead
let milliseconds = 0
const peakMiB = await peakGrowth(async () => {
  const from = performance.now()
  if (table === undefined) await load()
  const live = table ?? 'live'
  const [row] = await sql.unsafe(
    `SELECT count(*) AS n FROM ${schema}.entries e WHERE NOT EXISTS (SELECT 1 FROM ${live} l WHERE l.key = e.key)`
  )
  dead = Number(row.n)
  milliseconds = performance.now() - from
})
await close()
if (dead !== 0) throw new Error(`a look by hand found ${dead} of ${entries} entries dead`)
answer({ figure: (milliseconds * 1000) / entries, peakMiB })

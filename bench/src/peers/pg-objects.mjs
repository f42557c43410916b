/** Large objects by hand: each transport that the driver has, with windows of any size. */
import { binaryRows } from './pg-raw.mjs'

const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const TAIL = Buffer.from([0xff, 0xff])

/** Gathers a stream's chunks into windows of this length, in one buffer that is filled again and again. */
async function* windowsOf(stream, length) {
  const window = Buffer.allocUnsafeSlow(length)
  let filled = 0
  for await (const chunk of stream) {
    window.set(chunk, filled)
    filled += chunk.length
    if (filled < length) continue
    yield window
    filled = 0
  }
  if (filled > 0) yield window.subarray(0, filled)
}

/** In one transaction, as text (`base64`, `hex`): a `lo_put` a window. Answers the object's number. */
export async function writeAsText({ sql }, stream, length, encoding) {
  await sql.unsafe('BEGIN')
  const [{ oid }] = await sql.unsafe('SELECT lo_create(0) AS oid')
  const put = `SELECT lo_put($1::oid, $2::bigint, decode($3::text, '${encoding}'))`
  let at = 0
  for await (const window of windowsOf(stream, length)) {
    await sql.unsafe(put, [oid, at, window.toString(encoding)], { prepare: true })
    at += window.length
  }
  await sql.unsafe('COMMIT')
  return oid
}

/** The same by one COPY of all windows, each written by a condition or a trigger (`write`), or from the table afterwards. */
async function writeByCopy({ sql }, stream, length, { prepare, copy, finish }) {
  await sql.unsafe('BEGIN')
  const [{ oid }] = await sql.unsafe('SELECT lo_create(0) AS oid')
  await sql.unsafe(`CREATE TEMP TABLE w (at bigint, bytes bytea) ON COMMIT DROP; ${prepare(oid)}`)
  const copying = await sql.unsafe(copy(oid)).writable()
  const failed = new Promise((_, reject) => copying.once('error', reject))
  const write = chunk =>
    Promise.race([failed, new Promise((resolve, reject) => copying.write(chunk, e => (e ? reject(e) : resolve())))])
  await write(HEAD)
  let at = 0
  for await (const window of windowsOf(stream, length)) {
    await write(rowHead(at, window.length))
    await write(window)
    at += window.length
  }
  await Promise.race([failed, new Promise(resolve => copying.once('finish', resolve).end(TAIL))])
  await sql.unsafe(`${finish?.(oid) ?? ''}; COMMIT`)
  return oid
}

function rowHead(at, length) {
  const head = Buffer.allocUnsafe(2 + 4 + 8 + 4)
  head.writeInt16BE(2, 0)
  head.writeInt32BE(8, 2)
  head.writeBigInt64BE(BigInt(at), 6)
  head.writeInt32BE(length, 14)
  return head
}

const COPY = 'COPY w (at, bytes) FROM STDIN (FORMAT binary)'

/** A condition writes each row, and keeps none. */
export const writeByCondition = (client, stream, length) =>
  writeByCopy(client, stream, length, {
    prepare: () => '',
    copy: oid => `${COPY} WHERE lo_put(${oid}, at, bytes) IS NULL`
  })

/** All windows lie in a temporary table first. */
export const writeByTable = (client, stream, length) =>
  writeByCopy(client, stream, length, {
    prepare: () => 'ALTER TABLE w ALTER bytes SET STORAGE EXTERNAL',
    copy: () => COPY,
    finish: oid => `SELECT count(lo_put(${oid}, at, bytes)) FROM w`
  })

/** Puts an object into a file of the server's own, in its folder, for `importFile`. */
export const exportFile = ({ sql }, oid) => sql.unsafe(`SELECT lo_export(${oid}, 'bench-object')`)
/** The server alone, from a file of its own. */
export const importFile = ({ sql }) => sql.unsafe(`SELECT lo_import('bench-object')`)

/** Each window asked for when the one before has come; answers the bytes. */
export async function readAsText({ sql }, oid, total, length, encoding) {
  const get = `SELECT encode(lo_get($1::oid, $2::bigint, $3::integer), '${encoding}') AS bytes`
  let read = 0
  for (let at = 0; at < total; at += length) {
    const [row] = await sql.unsafe(get, [oid, at, length], { prepare: true })
    read += Buffer.from(row.bytes, encoding).length
  }
  return read
}

/** The same in binary form, with `ahead` windows on their way. */
export async function readByCursor(client, oid, total, length, ahead) {
  const coming = []
  let read = 0
  const take = async () => {
    const [[bytes]] = await coming.shift()
    read += bytes.length
  }
  for (let at = 0; at < total; at += length) {
    coming.push(binaryRows(client, `SELECT lo_get(${oid}, ${at}, ${length})`))
    if (coming.length > ahead) await take()
  }
  while (coming.length > 0) await take()
  return read
}

/** Everything in one COPY, whose session is taken until the last byte is read. */
export async function readByCopy({ sql, resume }, oid, total, length) {
  const pieces = `SELECT lo_get(${oid}, at, ${length}) FROM generate_series(0::bigint, ${total - 1}, ${length}) AS at`
  const stream = await sql.unsafe(`COPY (${pieces}) TO STDOUT (FORMAT binary)`).readable()
  let read = 0
  for await (const chunk of stream) read += chunk.length
  resume()
  return read - HEAD.length - TAIL.length - Math.ceil(total / length) * 6
}

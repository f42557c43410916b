/**
 * `postgres` by hand, as fast as it goes: a client is one connection over a socket of our own, because the driver's waits for the acknowledgement
 * of small packets (40 ms a COPY) and stays paused after `copy … to stdout`.
 */
import { connect } from 'node:net'
import postgres from 'postgres'
import { perSecond } from '../rounds.mjs'

const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const TAIL = Buffer.from([0xff, 0xff])
const KEY_LENGTH = 32

/** One connection that is open. `sql` is the driver's; `resume` lets its socket flow again. */
export async function openClient(at, settings = '') {
  let socket
  const makeSocket = () =>
    new Promise((resolve, reject) => {
      socket = connect(at.port, at.host, () => resolve(socket))
      socket.setNoDelay(true)
      socket.once('error', reject)
    })
  const sql = postgres({ ...at, max: 1, fetch_types: false, onnotice: () => undefined, socket: makeSocket })
  await sql.unsafe(`SELECT 1; ${settings}`)
  return { sql, resume: () => socket.resume(), close: () => sql.end({ timeout: 1 }) }
}

/** So many of them, which `closing` is told to close. */
export async function openClients(at, count, closing, settings) {
  const clients = await Promise.all(Array.from({ length: count }, () => openClient(at, settings)))
  for (const client of clients) closing(() => client.close())
  return clients
}

/** How many of `count` pieces of work a second are done in batches of `width`, one batch at a time on each of the clients. */
export async function batchesPerSecond(clients, { count, width }, work) {
  const batches = Math.ceil(count / width)
  const free = [...clients]
  const lane = async batch => {
    const client = free.pop()
    await work(client, batch * width, (batch + 1) * width)
    free.push(client)
  }
  return width * (await perSecond({ count: batches, width: clients.length }, lane))
}

/** `COPY table (key, body) FROM STDIN`. */
export async function copyIn({ sql }, table, keys, bodies) {
  const stream = await sql.unsafe(`COPY ${table} (key, body) FROM STDIN (FORMAT binary)`).writable()
  await new Promise((resolve, reject) => {
    stream.once('error', reject)
    stream.once('finish', resolve)
    stream.end(copyRows(keys, bodies))
  })
}

function copyRows(keys, bodies) {
  const parts = [HEAD]
  for (const [i, key] of keys.entries()) {
    const head = Buffer.allocUnsafe(2 + 4 + KEY_LENGTH + 4)
    head.writeInt16BE(2, 0)
    head.writeInt32BE(KEY_LENGTH, 2)
    key.copy(head, 6)
    head.writeInt32BE(bodies[i].length, 6 + KEY_LENGTH)
    parts.push(head, bodies[i])
  }
  return Buffer.concat([...parts, TAIL])
}

/** `COPY (query) TO STDOUT`, `query` answering `count` rows of key and body; answers how many bytes of bodies came. */
export async function copyOut({ sql, resume }, query, count) {
  const stream = await sql.unsafe(`COPY (${query}) TO STDOUT (FORMAT binary)`).readable()
  let length = 0
  for await (const chunk of stream) length += chunk.length
  resume()
  return length - HEAD.length - TAIL.length - count * (10 + KEY_LENGTH)
}

/** Rows in binary form, in one message each way: only a cursor gives them to a simple query. */
export async function binaryRows({ sql }, query) {
  const answers = await sql.unsafe(`BEGIN; DECLARE c BINARY CURSOR FOR ${query}; FETCH ALL c; COMMIT`).raw()
  return answers.find(({ length }) => length > 0) ?? []
}

/** Byte strings as the text of an array parameter. */
export const arrayOf = list => `{${list.map(bytes => `"\\\\x${bytes.toString('hex')}"`).join()}}`

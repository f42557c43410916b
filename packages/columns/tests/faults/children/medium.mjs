// Sees every call that this process makes of its media, right before it is made: of the file system, of SQLite, of a server. The calls are those
// of Node.js and of the driver; nothing of the engines knows of it. To be imported before they are.
import fs from 'node:fs/promises'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'

/** @type {((call: string) => void) | undefined} */
let see
/** From now on each call is told to that function before it is made. */
export const onMedium = told => {
  see = told
}

/** Numbers and names that differ from run to run. */
const blurred = text => text.replaceAll(/[0-9a-f]{2,}(?![a-z])/g, '#').replaceAll(/\s+/g, ' ')
const place = path => blurred(String(path).split('/').slice(-3).join('/'))

for (const name of ['link', 'mkdir', 'rename', 'unlink']) {
  const real = fs[name]
  fs[name] = (...args) => {
    see?.(`${name} ${place(args.at(name === 'rename' || name === 'link' ? 1 : 0))}`)
    return real(...args)
  }
}
const paths = new WeakMap()
const open = fs.open
fs.open = async (...args) => {
  // A file that is opened to be read leaves nothing.
  if (args.length > 2) see?.(`create ${place(args[0])}`)
  const handle = await open(...args)
  watchHandles(Object.getPrototypeOf(handle))
  paths.set(handle, place(args[0]))
  return handle
}
syncBuiltinESMExports()

let areHandlesWatched = false
function watchHandles(handles) {
  if (areHandlesWatched) return
  areHandlesWatched = true
  for (const name of ['write', 'writev', 'writeFile', 'sync', 'datasync']) {
    const real = handles[name]
    handles[name] = function (...args) {
      see?.(`${name} ${paths.get(this)}`)
      return real.apply(this, args)
    }
  }
}

const Database = createRequire(import.meta.resolve('@alkblobs/engine-sqlite'))('better-sqlite3')
const exec = Database.prototype.exec
Database.prototype.exec = function (sql) {
  see?.(`sqlite ${blurred(sql).slice(0, 60)}`)
  return exec.call(this, sql)
}
const database = new Database(':memory:')
const statements = Object.getPrototypeOf(database.prepare('SELECT 1'))
database.close()
for (const name of ['run', 'get', 'all']) {
  const real = statements[name]
  statements[name] = function (...args) {
    if (!this.readonly) see?.(`sqlite ${blurred(this.source.trim()).slice(0, 60)}`)
    return real.apply(this, args)
  }
}

/** What leaves something behind on a server. A death before anything else is a death after the last of these. */
const CHANGES =
  /\b(INSERT INTO|DELETE FROM|UPDATE \S+ (\w+ )?SET|COMMIT|lo_put|lo_from_bytea|pg_(try_)?advisory_\w*lock)\b/
const known = new WeakMap()
const write = Socket.prototype.write
Socket.prototype.write = function (chunk, ...rest) {
  if (this.remotePort !== undefined) {
    for (const sql of asked(this, Buffer.from(chunk)))
      if (CHANGES.test(sql)) see?.(`server ${blurred(sql.trim()).slice(0, 90)}`)
  }
  return write.call(this, chunk, ...rest)
}

/** The statements that messages have run, by their texts or by the names that earlier ones gave them. A message may come in several writes. */
function asked(socket, bytes) {
  const at = known.get(socket) ?? { names: new Map(), rest: Buffer.alloc(0) }
  known.set(socket, at)
  const run = []
  // The first message of all has no letter, but a length that begins with a zero; it comes whole.
  let all = bytes[0] === 0 && at.rest.length === 0 ? bytes.subarray(bytes.length) : Buffer.concat([at.rest, bytes])
  while (all.length >= 5 && all.length > all.readUInt32BE(1)) {
    const message = all.subarray(0, 1 + all.readUInt32BE(1))
    all = all.subarray(message.length)
    const textAt = from => message.toString('utf8', from, message.indexOf(0, from))
    const name = textAt(5)
    const after = textAt(6 + Buffer.byteLength(name))
    const type = String.fromCharCode(message[0])
    if (type === 'Q') run.push(name)
    if (type === 'P') at.names.set(name, after)
    if (type === 'B') run.push(at.names.get(after) ?? '')
  }
  at.rest = all
  return run
}

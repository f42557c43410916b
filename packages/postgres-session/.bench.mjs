import { Sessions } from './dist/index.js'
import { startServer } from '../testkit/dist/index.js'
import { randomBytes } from 'node:crypto'
const server = await startServer({ settings: { fsync: 'off', shared_buffers: '512MB', max_wal_size: '2GB' } })
const s = new Sessions({ url: server.url }, { connectTimeoutMs: 3000, lockTimeoutMs: 3000 })
const call = { deadlineMs: Infinity }
const header = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const trailer = Buffer.from([0xff, 0xff])
function* binary(rows) { yield header; for (const [k, b] of rows) { const h = Buffer.alloc(2 + 4 + 4 + 4); h.writeInt16BE(2, 0); h.writeInt32BE(4, 2); h.writeInt32BE(k, 6); h.writeInt32BE(b.length, 10); yield h; yield b } yield trailer }
function* joined(rows) { let parts = [header], n = 0; for (const [k, b] of rows) { const h = Buffer.alloc(14); h.writeInt16BE(2, 0); h.writeInt32BE(4, 2); h.writeInt32BE(k, 6); h.writeInt32BE(b.length, 10); parts.push(h, b); n += b.length; if (n > 65536) { yield Buffer.concat(parts); parts = []; n = 0 } } yield Buffer.concat([...parts, trailer]) }
const time = async (name, bytes, fn) => { const t = []; for (let i = 0; i < 5; i++) { const a = performance.now(); await fn(); t.push(performance.now() - a) } t.sort((a, b) => a - b); console.log(name.padEnd(34), (bytes / 1e6 / (t[2] / 1e3)).toFixed(0).padStart(6), 'MB/s') }
for (const [size, count] of [[1024, 2000], [16384, 1000], [131072, 200], [1048576, 40]]) {
  const rows = Array.from({ length: count }, (_, k) => [k, randomBytes(size)]); const total = size * count
  await s.use(call, async x => {
    await x.run('DROP TABLE IF EXISTS public.b; CREATE TABLE public.b (k int primary key, v bytea); ALTER TABLE public.b ALTER v SET STORAGE EXTERNAL')
    const clear = () => x.run('TRUNCATE public.b')
    console.log(`--- ${size} x ${count}`)
    const batch = Math.max(1, Math.min(50, Math.floor(2 ** 21 / size)))
    await time('write hex, unnest batches', total, async () => { await clear(); await x.run('BEGIN'); for (let i = 0; i < count; i += batch) { const part = rows.slice(i, i + batch); await x.run('INSERT INTO public.b SELECT * FROM unnest($1::int[], $2::bytea[])', [part.map(r => r[0]), part.map(r => r[1])]) } await x.run('COMMIT') })
    await time('write hex, one by one pipelined', total, async () => { await clear(); await x.run('BEGIN'); for (let i = 0; i < count; i += batch) await Promise.all(rows.slice(i, i + batch).map(r => x.run('INSERT INTO public.b VALUES ($1, $2)', r))); await x.run('COMMIT') })
    await time('write base64, unnest batches', total, async () => { await clear(); await x.run('BEGIN'); for (let i = 0; i < count; i += batch) { const part = rows.slice(i, i + batch); await x.run("INSERT INTO public.b SELECT k, decode(v, 'base64') FROM unnest($1::int[], $2::text[]) AS u(k, v)", [part.map(r => r[0]), part.map(r => r[1].toString('base64'))]) } await x.run('COMMIT') })
    await time('write binary COPY, a row a chunk', total, async () => { await clear(); await x.copyIn('COPY public.b FROM STDIN (FORMAT binary)', binary(rows)) })
    await time('write binary COPY, joined 64 KiB', total, async () => { await clear(); await x.copyIn('COPY public.b FROM STDIN (FORMAT binary)', joined(rows)) })
    await time('read hex, one query', total, async () => { await x.rows('SELECT k, v FROM public.b') })
    await time('read base64, one query', total, async () => { (await x.rows("SELECT k, translate(encode(v, 'base64'), E'\\n', '') FROM public.b")).map(r => Buffer.from(r[1], 'base64')) })
    await time('read binary COPY', total, async () => { for await (const c of x.copyOut('COPY public.b TO STDOUT (FORMAT binary)')); })
    await time('read hex, one by one', total, async () => { for (const [k] of rows) await x.rows('SELECT v FROM public.b WHERE k = $1', [k]) })
    await time('read COPY, one by one', total, async () => { for (const [k] of rows) for await (const c of x.copyOut(`COPY (SELECT v FROM public.b WHERE k = ${k}) TO STDOUT (FORMAT binary)`)); })
    await time('read hex, pipelined 32', total, async () => { for (let i = 0; i < count; i += 32) await Promise.all(rows.slice(i, i + 32).map(([k]) => x.rows('SELECT v FROM public.b WHERE k = $1', [k]))) })
  })
}
await s.close(); await server.release()

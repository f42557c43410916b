/**
 * What a fleet costs its server as instances and pins grow: statements and bytes on the wire, rows written, and bytes of the server's log,
 * for a put, a renewal and a sweep. The wire is counted by a relay in between; the server is this test's own. The figures are those of
 * docs/guides/fleet.md; what is asserted is how they grow.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { openStore, type Store } from '@alkblobs/core'
import { postgres } from '@alkblobs/engine-postgres'
import { clientOf, noServer, startServer, type TestServer } from '@alkblobs/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLong, report } from '../processes/children.js'

const INSTANCES = isLong ? [1, 4, 16] : [1, 4]
const PINS = isLong ? [10, 100, 1_000, 10_000] : [10, 1_000]
const ABSENT = `blake3:${'0'.repeat(64)}`
const PUTS = 50
const LENGTH = 1_000
/** Calls under way at once. */
const TOGETHER = 50
/** Pins of one renewal statement, as the library sends them. */
const RENEWED_TOGETHER = 1_000

interface Counts {
  readonly statements: number
  readonly wireBytes: number
  readonly rows: number
  readonly logBytes: number
}

/** Passes bytes on and counts what clients ask: an Execute or a simple Query is a statement. */
class Relay {
  statements = 0
  wireBytes = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor({ host, port }: { readonly host: string; readonly port: number }) {
    this.#server = createServer(client => {
      const upstream = connect({ host, port })
      const isStatement = statementsOf()
      client.on('data', (data: Buffer) => {
        this.wireBytes += data.length
        this.statements += isStatement(data)
        upstream.write(data)
      })
      upstream.on('data', (data: Buffer) => {
        this.wireBytes += data.length
        client.write(data)
      })
      for (const [one, other] of [
        [client, upstream],
        [upstream, client]
      ] as const) {
        this.#sockets.add(one)
        one.on('error', () => other.destroy())
        one.on('close', () => other.destroy())
      }
    })
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as { port: number }).port
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** Counts messages in a client's stream, across the borders of its chunks. The first has no type. */
function statementsOf(): (data: Buffer) => number {
  let rest = Buffer.alloc(0)
  let isStarted = false
  return data => {
    rest = Buffer.concat([rest, data])
    let count = 0
    for (;;) {
      const header = isStarted ? 5 : 4
      if (rest.length < header) return count
      const length = rest.readInt32BE(header - 4) + header - 4
      if (rest.length < length) return count
      const type = isStarted ? String.fromCharCode(rest[0] ?? 0) : ''
      // A request for TLS is as long as this, and is answered before the start proper.
      if (!isStarted && length !== 8) isStarted = true
      if (type === 'E' || type === 'Q') count++
      rest = rest.subarray(length)
    }
  }
}

describe.skipIf(noServer() !== undefined)('the cost of a fleet', () => {
  let server: TestServer
  let relay: Relay
  let client: ReturnType<typeof clientOf>
  let url: string
  beforeAll(async () => {
    server = await startServer()
    relay = new Relay(server)
    client = clientOf(server)
    url = server.url.replace(`:${server.port}/`, `:${await relay.listen()}/`)
  })
  afterAll(async () => {
    relay.close()
    await client.close()
    await server.release()
  })

  const now = async () => {
    const [row] = await client.query<{ id: string; log: number }>(
      "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS id, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS log"
    )
    return row as { id: string; log: number }
  }
  /** Rows that are there and were written by that transaction or a later one. */
  const rowsSince = async (schema: string, id: string) => {
    const since = (table: string) => `SELECT count(*) AS n FROM ${schema}.${table} WHERE xmin::text::bigint >= ${id}`
    const tables = ['entries', 'gc_pins', 'gc_window', 'stages', 'trash'].map(since)
    const [row] = await client.query<{ n: number }>(
      `SELECT sum(n)::int AS n FROM (${tables.join(' UNION ALL ')}) AS all_of_them`
    )
    return row?.n ?? 0
  }
  const measured = async (schema: string, work: () => Promise<unknown>): Promise<Counts> => {
    const { id, log } = await now()
    const [statements, wireBytes] = [relay.statements, relay.wireBytes]
    await work()
    const wire = { statements: relay.statements - statements, wireBytes: relay.wireBytes - wireBytes }
    const logBytes = (await now()).log - log
    return { ...wire, rows: await rowsSince(schema, id), logBytes }
  }

  it('grows with pins in steps of a thousand, and not with instances', { timeout: 900_000 }, async () => {
    const lines: string[] = []
    const renewals = new Map<string, Counts>()
    const puts = new Map<number, number>()
    for (const instances of INSTANCES) {
      const schema = `scale_${instances}`
      const stores = await Promise.all(Array.from({ length: instances }, () => open(url, schema)))
      const [first] = stores as [Store]
      await first.protect({ table: await application(client, schema), column: 'key' })
      const most = Math.max(...PINS.filter(pins => pins * instances <= 20_000))
      const keys: string[] = []
      for (let at = 0; at < most; at += TOGETHER) {
        const receipts = await Promise.all(
          Array.from({ length: Math.min(TOGETHER, most - at) }, (_, n) => first.put(content(at + n)))
        )
        for (const receipt of receipts) keys.push(receipt.key)
        for (const receipt of receipts) await receipt.release()
      }
      await first.delete(ABSENT)
      const idle = await measured(schema, () => first.delete(ABSENT))
      const put = await measured(schema, async () => {
        for (let n = 0; n < PUTS; n++) await (await first.put(content(1_000_000 + n))).release()
      })
      puts.set(instances, put.statements / PUTS)
      // The last release may still be on its way, and is nothing that a renewal costs.
      await first.delete(ABSENT)
      lines.push(line(`${instances} instances, one put and its release`, divided(put, PUTS)))
      for (const pins of PINS.filter(count => count <= most)) {
        const held = await Promise.all(stores.map(store => pinned(store, keys.slice(0, pins))))
        const renewal = await measured(schema, () => first.delete(ABSENT))
        const cost = less(renewal, idle)
        renewals.set(`${instances} ${pins}`, cost)
        lines.push(line(`${instances} instances, ${pins} pins each: one renewal of one instance`, cost))
        if (pins === most) {
          const sweep = await measured(schema, () => first.sweep())
          lines.push(line(`${instances} instances, ${pins} pins each: one sweep that finds all of them live`, sweep))
        }
        for (const each of held) for (const pin of each) await pin.release()
        for (const store of stores) await store.delete(ABSENT)
      }
      for (const store of stores) await store.close()
    }
    for (const each of lines) report(each)
    for (const [which, { statements, rows }] of renewals) {
      const pins = Number(which.split(' ')[1])
      expect([statements, rows], `a renewal of ${which}`).toEqual([Math.ceil(pins / RENEWED_TOGETHER), pins])
    }
    // Others that hold still cost a put nothing; a lane that opens its session is the difference.
    const [one = 0, ...more] = puts.values()
    for (const statements of more) expect(Math.abs(statements - one)).toBeLessThan(1)
  })
})

async function open(url: string, schema: string): Promise<Store> {
  return await openStore({
    kv: postgres({ url, schema, poolMax: 4 }),
    threshold: 4_096,
    windowDelayMs: 0,
    // Renewed when the test says so, and by no timer.
    fleet: { pinTtlMs: 3_600_000 }
  })
}

async function pinned(store: Store, keys: readonly string[]) {
  const pins: NonNullable<Awaited<ReturnType<Store['pin']>>>[] = []
  for (let at = 0; at < keys.length; at += TOGETHER) {
    for (const pin of await Promise.all(keys.slice(at, at + TOGETHER).map(key => store.pin(key))))
      if (pin) pins.push(pin)
  }
  return pins
}

async function application({ query }: ReturnType<typeof clientOf>, schema: string): Promise<string> {
  await query(`CREATE TABLE public.app_${schema} (key text); CREATE INDEX ON public.app_${schema} (key)`)
  return `public.app_${schema}`
}

function content(n: number): Buffer {
  return Buffer.alloc(LENGTH, `${n} `)
}

const divided = (counts: Counts, by: number): Counts => mapped(counts, value => value / by)
const less = (counts: Counts, other: Counts): Counts => mapped(counts, (value, name) => value - other[name])

function mapped(counts: Counts, change: (value: number, name: keyof Counts) => number): Counts {
  const names = Object.keys(counts) as (keyof Counts)[]
  return Object.fromEntries(names.map(name => [name, change(counts[name], name)])) as unknown as Counts
}

function line(what: string, { statements, wireBytes, rows, logBytes }: Counts): string {
  const whole = (value: number) => Math.round(value).toLocaleString('en-US')
  return `${what}: ${statements.toFixed(1)} statements, ${whole(wireBytes)} B on the wire, ${whole(rows)} rows written, ${whole(logBytes)} B of log`
}

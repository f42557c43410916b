/**
 * Four processes over one pool, two of which sweep without a pause, while they are killed, stopped for longer than their pins live, and
 * cut off from the server. Each writes down what it did and saw; so does the catalog, by a trigger; a checker reads all of it afterwards.
 *
 * The short form is a few hundred operations; `ALKBLOBS_LONG=1` makes it more than twenty thousand.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { noServer, type TestSchema } from '@alkblobs/testkit'
import { afterEach, describe, expect, it } from 'vitest'
import { Child, fractionOf, isLong, newSeed, report, temporaryFolder } from '../processes/children.js'
import { type FleetPool, fleetPool, type Kind } from './fleet-places.js'
import { type Audited, type Event, violations } from './history.js'

const PROCESSES = 4
const KEYS = 240
/** Of each process. */
const OPERATIONS = isLong ? 5_100 : 150
const LIMIT_MS = isLong ? 1_500_000 : 90_000
const LIVES = { fleet: { pinTtlMs: 1_200 }, stageTtlMs: 1_200, operationTimeoutMs: 10_000, lockTimeoutMs: 2_000 }
/** Longest stop: twice what a pin lives. */
const STOP_MAX_MS = 2_400

/** What happens at one step of the disturbances, by the highest number that means it; above all of them nothing does. */
const [KILL, STOP, CUT_OFF] = [0.06, 0.18, 0.5]

const AUDIT = `CREATE SCHEMA $;
  CREATE TABLE $.audit (n bigserial PRIMARY KEY, key bytea NOT NULL, what text NOT NULL, at timestamptz NOT NULL);
  CREATE TABLE $.references (id text PRIMARY KEY, slot integer NOT NULL, key text NOT NULL);
  CREATE INDEX ON $.references (key);
  CREATE FUNCTION $.audit() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
    INSERT INTO $.audit (key, what, at) VALUES (
      CASE TG_OP WHEN 'INSERT' THEN NEW.key ELSE OLD.key END,
      CASE TG_OP WHEN 'INSERT' THEN 'made' ELSE 'removed' END, clock_timestamp());
    RETURN NULL; END $body$;
  CREATE TRIGGER audit AFTER INSERT OR DELETE ON %.entries FOR EACH ROW EXECUTE FUNCTION $.audit()`

describe.skipIf(noServer() !== undefined)('a soak', () => {
  let pool: FleetPool | undefined
  afterEach(async () => {
    await pool?.drop()
    pool = undefined
  })

  const kinds: readonly Kind[] = isLong ? ['files', 'objects'] : ['files']
  it.each(kinds)('loses nothing that was protected, over %s', { timeout: LIMIT_MS + 60_000 }, async kind => {
    pool = await fleetPool(kind)
    const seed = newSeed(`soak over ${kind}`)
    const store = await pool.open()
    const first = await store.put('first')
    await first.release()
    await store.delete(first.key)
    const application = await pool.application()
    const { schema } = application
    const { place } = pool
    await application.query(
      AUDIT.replaceAll('$.', `${schema}.`).replace('SCHEMA $', `SCHEMA ${schema}`).replace('%', place.schema)
    )

    const folder = await temporaryFolder()
    const fleet = new Fleet({ pool, folder, seed, table: `${schema}.references` })
    const started = performance.now()
    const faults = await fleet.run()
    const seconds = (performance.now() - started) / 1_000
    // What is referenced now was referenced until now.
    const now = Date.now()
    const references = await application.query<{ id: string; key: string }>(`SELECT id, key FROM ${schema}.references`)
    await settle(pool, store, `${schema}.references`)

    const left = (await pool.rows<{ key: string }>("SELECT 'blake3:' || encode(key, 'hex') AS key FROM $.entries")).map(
      ({ key }) => key
    )
    const events: Event[] = [
      ...eventsIn(folder),
      ...references.map(({ id }) => ({ op: 'stands', id, at: now }) as const)
    ]
    const audit = await auditOf(application)
    const found = violations({ events, audit, left })
    const counts = countsOf(events)
    report(
      `soak over ${kind}: ${JSON.stringify({ seed, seconds, ...counts, ...faults, made: audit.length, left: left.length })}`
    )
    expect(found.slice(0, 10)).toEqual([])
    expect(counts.operations).toBeGreaterThanOrEqual(PROCESSES * OPERATIONS * 0.95)
    // It must have been what it is called: entries went and came again, and the faults were there.
    expect(audit.filter(({ what }) => what === 'removed').length).toBeGreaterThan(OPERATIONS / 10)
    for (const fault of ['killed', 'stopped', 'cutOff'] as const) expect(faults[fault], fault).toBeGreaterThan(0)

    expect(left.sort()).toEqual([...new Set(references.map(({ key }) => key))].sort())
    expect((await store.verify()).clean).toBe(true)
    await application.query(`DELETE FROM ${schema}.references`)
    for (let time = 0; time < 2; time++) expect((await store.sweep()).aborted).toBeUndefined()
    const { entries, pins, window, stages, trash } = await store.usage()
    expect({ entries, pins, window, stages, trash }).toEqual({ entries: 0, pins: 0, window: 0, stages: 0, trash: 0 })
    expect(await pool.bodies()).toEqual({ sealed: 0, halves: 0 })
  })
})

interface FleetParts {
  readonly pool: FleetPool
  readonly folder: string
  readonly seed: number
  readonly table: string
}

/** The processes, and what happens to them. */
class Fleet {
  readonly #parts: FleetParts
  readonly #children: { child: Child; life: number; started: Promise<unknown>; isDone: boolean }[] = []
  readonly #stops = new Set<Promise<void>>()
  readonly #faults = { killed: 0, stopped: 0, cutOff: 0 }

  constructor(parts: FleetParts) {
    this.#parts = parts
  }

  /** Until every process has done its part; answers how much it went through. */
  async run(): Promise<Readonly<{ killed: number; stopped: number; cutOff: number }>> {
    for (let slot = 0; slot < PROCESSES; slot++) this.#start(slot, 0)
    const end = performance.now() + LIMIT_MS
    // Of each fault one for certain, whatever chance brings, as soon as everybody is at work.
    await Promise.all(this.#children.map(({ started }) => started))
    for (const [at, what] of [CUT_OFF, STOP, KILL, STOP, KILL].entries())
      await this.#disturb(`first ${at}`, at % PROCESSES, what)
    for (let step = 0; this.#children.some(({ isDone }) => !isDone); step++) {
      if (performance.now() > end) throw new Error('the soak did not end in its time')
      await sleep(40 + 120 * this.#fraction(`wait ${step}`))
      const slot = Math.floor(this.#fraction(`who ${step}`) * PROCESSES)
      await this.#disturb(`${step}`, slot, this.#fraction(`what ${step}`))
    }
    await Promise.all(this.#stops)
    for (const { child } of this.#children) child.tell()
    await Promise.all(this.#children.map(({ child }) => child.finish()))
    return this.#faults
  }

  #start(slot: number, life: number): void {
    const { pool, folder, seed, table } = this.#parts
    const given = {
      place: pool.place,
      log: join(folder, `${slot}.${life}.log`),
      seed: seed + 1_000 * life + slot,
      slot,
      life,
      keys: KEYS,
      operations: OPERATIONS - operationsOf(eventsIn(folder, `${slot}.`)),
      sweeps: slot < 2,
      table,
      options: LIVES
    }
    const child = new Child('../../postgres/workers/soak.mjs', { given, limitMs: LIMIT_MS })
    const started = child.next()
    const running = { child, life, started, isDone: false }
    this.#children[slot] = running
    // The second thing it says is that it has done its part. A process that was killed says nothing more.
    void started
      .then(() => child.next())
      .then(
        () => {
          running.isDone = true
        },
        () => {}
      )
  }

  /** `what`: a number below one of the limits. */
  async #disturb(step: string, slot: number, what: number): Promise<void> {
    const running = this.#children[slot]
    if (running === undefined || running.isDone) return
    if (what <= KILL) {
      const { child, life } = running
      const { signal } = await child.kill()
      // It may have ended well, or badly, a moment before.
      if (signal !== 'SIGKILL') throw new Error(`process ${slot} ended by itself: ${child.complaints}`)
      this.#faults.killed++
      this.#start(slot, life + 1)
    } else if (what <= STOP) {
      const stop = this.#stop(running.child, STOP_MAX_MS * this.#fraction(`long ${step}`))
      this.#stops.add(stop)
      void stop.then(() => this.#stops.delete(stop))
    } else if (what <= CUT_OFF) {
      const one = `SELECT pg_terminate_backend(pid, 5000) AS done FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = $1 ORDER BY md5($2 || pid) LIMIT 1`
      const ended = await this.#parts.pool.query(one, [`soak ${slot}`, step])
      this.#faults.cutOff += ended.length
    }
  }

  async #stop(child: Child, ms: number): Promise<void> {
    await child.pause()
    this.#faults.stopped++
    await sleep(ms)
    child.resume()
  }

  #fraction(decision: string): number {
    return fractionOf(this.#parts.seed, decision)
  }
}

/** Lets everything expire that the processes have left, and collects it. */
async function settle(pool: FleetPool, store: Awaited<ReturnType<FleetPool['open']>>, table: string): Promise<void> {
  await store.protect({ table, column: 'key' })
  for (let time = 0; time < 3; time++) {
    await pool.rows("UPDATE $.gc_pins SET expires_at = 'epoch'")
    await pool.rows("UPDATE $.stages SET expires_at = 'epoch'")
    await pool.rows("UPDATE $.trash SET not_before = 'epoch'")
    expect((await store.sweep()).aborted).toBeUndefined()
    expect((await store.maintain({ scan: true })).failed).toEqual([])
  }
}

/** Every whole line of the logs, those of each process in their order. A process that was killed may have left half a line. */
function eventsIn(folder: string, prefix = ''): Event[] {
  return readdirSync(folder)
    .filter(name => name.startsWith(prefix) && name.endsWith('.log'))
    .sort()
    .flatMap(name => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1))
    .map(line => JSON.parse(line) as Event)
}

const isSweeping = (what: string) => what === 'sweep' || what === 'maintain'

function operationsOf(events: readonly Event[]): number {
  return events.filter(event => (event.op === 'done' || event.op === 'failed') && !isSweeping(event.what)).length
}

function countsOf(events: readonly Event[]) {
  const failures: Record<string, number> = {}
  for (const event of events) {
    if (event.op !== 'failed') continue
    const name = `${event.what} ${event.code}`
    failures[name] = (failures[name] ?? 0) + 1
  }
  const sweeps = events.filter(event => event.op === 'done' && isSweeping(event.what)).length
  const of = (op: Event['op']) => events.filter(event => event.op === op).length
  return {
    operations: operationsOf(events),
    sweeps,
    leases: of('lease'),
    protections: of('protect'),
    absences: of('absent'),
    failures
  }
}

/**
 * The trigger's rows. Their times can be held against those of the processes only if the server reads the same clock; where it does not,
 * they have none, and are only counted.
 */
async function auditOf({ query, schema }: TestSchema): Promise<Audited[]> {
  const before = Date.now()
  const [row] = await query<{ ms: number }>('SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms')
  const ms = row?.ms ?? Number.NaN
  const isSameClock = before <= ms && ms <= Date.now() + 1
  const rows = await query<{ key: string; what: 'made' | 'removed'; ms: number }>(
    `SELECT 'blake3:' || encode(key, 'hex') AS key, what, extract(epoch FROM at)::float8 * 1000 AS ms FROM ${schema}.audit ORDER BY n`
  )
  return rows.map(({ key, what, ms: at }) => ({ key, what, at: isSameClock ? at : Number.NaN }))
}

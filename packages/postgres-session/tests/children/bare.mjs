// One scene of the driver alone, as an application would play it, without anything of ours around it. The parent does to the server and to the
// way what the scene says that it is ready for (`ready`), and hears how each promise ended. What is thrown outside of them ends the process.
import postgres from 'postgres'

const [scene, url] = process.argv.slice(2)
/** Long enough for whatever comes at all; what has not come by then is still waited for. */
const SHORT_MS = 700
const LONG_MS = 5_000
let told = () => undefined
process.on('message', () => told())
let closes = 0
let onclose = () => undefined
const connect = options =>
  postgres(url, {
    max: 1,
    fetch_types: false,
    backoff: false,
    onnotice: () => undefined,
    onclose: () => {
      closes += 1
      onclose()
    },
    ...options
  })

/** Waits until the parent has done its part. */
function ready(what = {}) {
  return new Promise(resolve => {
    told = resolve
    process.send({ ready: true, ...what })
  })
}
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
/** Waits until the driver has noticed that a connection is closed. */
const closed = () => (closes > 0 ? undefined : new Promise(resolve => (onclose = resolve)))
/** How it ends, or that it has not for so long. */
const fate = (promise, ms = SHORT_MS) =>
  Promise.race([
    promise.then(
      rows => ({ resolved: rows === undefined ? null : rows }),
      error => ({ rejected: error.code ?? error.name })
    ),
    sleep(ms).then(() => ({ pending: true }))
  ])
/** The driver sends a statement a turn after it was asked. */
const sent = () => sleep(0)
const say = answer => process.send({ said: answer })
const pidOf = async sql => (await sql`SELECT pg_backend_pid() AS pid`)[0].pid

const scenes = {
  async 'idle reserve'() {
    const sql = connect()
    await sql`SELECT 1`
    const held = await sql.reserve()
    await ready({ pid: await pidOf(held) })
    await closed()
    say(await fate(held`SELECT 1`))
  },

  async 'query inside begin'() {
    const sql = connect()
    const begun = sql.begin(async tx => {
      await tx`INSERT INTO public.t VALUES (1)`
      process.send({ ready: true })
      await tx`SELECT pg_sleep(30)`
    })
    say(await fate(begun, LONG_MS))
    await sleep(300)
    say('alive')
  },

  async 'slot that reconnects'() {
    const sql = connect()
    let over
    const work = new Promise(resolve => {
      over = resolve
    })
    const begun = sql.begin(async tx => {
      await tx`INSERT INTO public.t VALUES (1)`
      await tx`SELECT pg_sleep(30)`.catch(() => undefined)
      // Another part of the application uses the pool, which connects again; its first answer is the last word of the dead session.
      await sql`SELECT 1`.catch(() => undefined)
      await sql`SELECT 1`
      await tx`INSERT INTO public.t VALUES (2)`
      over()
    })
    process.send({ ready: true })
    say(await fate(begun, LONG_MS))
    await work
    say('worked on')
  },

  async 'stale handle'() {
    const sql = connect()
    await sql`SELECT 1`
    const held = await sql.reserve()
    await held`SELECT pg_advisory_lock(7)`
    const before = await pidOf(held)
    await ready({ pid: before })
    await closed()
    await sql`SELECT 1`
    const [{ pid, locks }] = await held`
      SELECT pg_backend_pid() AS pid,
        (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks`
    say({ isAnother: pid !== before, locks })
  },

  async 'reset during begin'() {
    const sql = connect()
    await sql`SELECT 1`
    const begun = sql.begin(tx => tx`SELECT pg_sleep(30)`)
    begun.catch(() => undefined)
    process.send({ ready: true })
    say(await fate(begun, LONG_MS))
    say(await fate(sql`SELECT 2 AS two`))
    say(await fate(sql`SELECT 3 AS three`))
    say(await fate(sql`SELECT 4 AS four`))
  },

  async 'begin at the pipeline limit'() {
    const sql = connect({ max_pipeline: 2 })
    await sql`SELECT 1`
    const others = [sql`SELECT pg_sleep(0.1)`.execute(), sql`SELECT 2`.execute()]
    await sent()
    const begun = sql.begin(tx => tx`SELECT 1`)
    await Promise.all(others)
    say(await fate(begun))
    await sleep(300)
    say('alive')
  },

  async 'accept and hang up'() {
    const sql = connect({ connect_timeout: 1 })
    say(await fate(sql`SELECT 1`))
  },

  async 'black hole'() {
    const sql = connect({ connect_timeout: 1 })
    await sql`SELECT 1`
    await ready()
    say(await fate(sql`SELECT 1`))
  },

  async 'silent commit'() {
    const sql = connect()
    const begun = sql.begin(async tx => {
      await tx`INSERT INTO public.t VALUES (1)`
      await ready()
    })
    say(await fate(begun))
  },

  async 'reset commit'() {
    const sql = connect()
    const begun = sql.begin(async tx => {
      await tx`INSERT INTO public.t VALUES (1)`
      await ready()
    })
    // Whatever else it does afterwards.
    begun.then(
      () => say({ resolved: null }),
      error => say({ rejected: error.code ?? error.name })
    )
    await begun.catch(() => undefined)
    await sleep(200)
  },

  async 'queued in a lost transaction'() {
    const sql = connect({ max_pipeline: 2 })
    let queued = []
    const begun = sql.begin(async tx => {
      queued = [tx`SELECT pg_sleep(30)`, ...Array.from({ length: 5 }, () => tx`SELECT 1`)]
      for (const each of queued) each.catch(() => undefined)
      process.send({ ready: true })
      await new Promise(() => undefined)
    })
    say(await fate(begun, LONG_MS))
    say(await Promise.all(queued.map(each => fate(each))))
  },

  async 'queued reserve'() {
    const sql = connect({ fetch_types: true })
    await sql`SELECT 1`
    const slow = sql`SELECT pg_sleep(30)`
    slow.catch(() => undefined)
    await sent()
    const reserved = sql.reserve().then(() => undefined)
    process.send({ ready: true })
    say(await fate(slow, LONG_MS))
    say(await fate(reserved))
    say(await fate(sql`SELECT 1 AS one`, LONG_MS))
  },

  async 'pooler by transaction'() {
    const sql = connect({ max: 2 })
    const all = Array.from({ length: 40 }, (_, n) => sql`SELECT ${n}::int AS n`)
    const fates = await Promise.all(all.map(each => fate(each)))
    say(fates.filter(each => each.resolved !== undefined).length)
  }
}

await scenes[scene]()
process.exit(0)

/** A fleet over one pool: what renewing many pins costs, and what many instances beside each other bring. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openStore } from '@alkblobs/core'
import { postgres } from '@alkblobs/engine-postgres'
import { freshList } from '../content.mjs'
import { openClients } from '../peers/pg-raw.mjs'
import { milliseconds, perSecond } from '../rounds.mjs'

const INSTANCE = import.meta.resolve('../children/pg-instance.mjs')
const LENGTH = 16 * 1024
const INSTANCES = [1, 2, 4, 8, 16]
/** In each instance. */
const IN_FLIGHT = 8
const PIN_TTL_MS = 6_000

export const pgFleet = {
  id: 'pg-fleet',
  needs: 'postgres',
  unit: 'puts/s',
  titleOf: () => `16 KiB, new content, ${IN_FLIGHT} in flight in each instance, one pool in PostgreSQL`,
  roundsOf: ({ scale }) => Math.min(5, scale.rounds),
  async contestants({ server, scale, closing }) {
    const fleet = []
    for (let i = 0; i < Math.max(...INSTANCES); i++) fleet.push(await instance(server, closing))
    // Each compiles its code for itself, which takes ten thousand puts, and is no matter of the pool.
    for (let warm = 0; warm < scale.pg.warmRounds; warm++) {
      await Promise.all(fleet.map(tell => tell({ prepare: scale.pg.count / 2 })))
      for (let i = 0; i < fleet.length; i += 2)
        await Promise.all(fleet.slice(i, i + 2).map(tell => tell({ put: true })))
    }
    const { count } = scale.pg
    return INSTANCES.map(instances => ({
      id: `of${instances}`,
      name: `${instances} instance${instances === 1 ? '' : 's'}`,
      note: 'each a process with sessions of its own; durable, hashed, pinned and released',
      run: async () => {
        const all = fleet.slice(0, instances)
        await Promise.all(all.map(tell => tell({ prepare: count / instances })))
        const took = await milliseconds(() => Promise.all(all.map(tell => tell({ put: true }))))
        return (count / took) * 1000
      }
    }))
  },
  ratiosOf: () => [
    {
      id: 'pg-fleet/throughput',
      value: round => round.of16.figure / Math.max(...INSTANCES.map(instances => round[`of${instances}`].figure)),
      atLeast: 0.9,
      against: 'the best number of instances in the round'
    }
  ]
}

/** A process that puts; answers a function that tells it what to do next and waits until it has. The first one makes the pool. */
async function instance(server, closing) {
  const work = { server, name: 'bench_fleet', length: LENGTH, width: IN_FLIGHT }
  const child = fork(fileURLToPath(INSTANCE), [JSON.stringify(work)])
  const done = async () => {
    const [code] = await Promise.race([once(child, 'message'), once(child, 'exit')])
    if (code !== 'done') throw new Error(`an instance ended with code ${code}`)
  }
  closing(async () => {
    if (!child.connected) return
    const exit = once(child, 'exit')
    child.disconnect()
    await exit
  })
  await done()
  return message => {
    child.send(message)
    return done()
  }
}

/** Renewals as they happen by themselves, three in a TTL, while nothing else is done. */
export const pgRenew = {
  id: 'pg-renew',
  needs: 'postgres',
  unit: 'ms',
  titleOf: ({ scale }) => `${scale.pg.pins.toLocaleString('en')} pins of one instance, a renewal of all of them`,
  warmUp: false,
  roundsOf: () => 3,
  async contestants({ server, scale, closing }) {
    const asked = []
    const kv = watched(postgres({ ...server, schema: 'bench_renew' }), asked)
    const store = await openStore({ kv, fleet: { pinTtlMs: PIN_TTL_MS } })
    closing(() => store.close())
    const [{ sql }] = await openClients(server, 1, closing)
    const { pins } = scale.pg
    const contents = freshList(pins, 32)
    const receipts = []
    await perSecond({ count: pins, width: 256 }, async i => {
      receipts[i] = await store.put(contents[i])
    })
    await sql.unsafe(`CREATE TABLE bench_renew_raw AS SELECT key, owner, expires_at FROM bench_renew.gc_pins`)
    await sql.unsafe('ALTER TABLE bench_renew_raw ADD PRIMARY KEY (key, owner)')
    const renewals = async () => {
      asked.length = 0
      await new Promise(resolve => setTimeout(resolve, PIN_TTL_MS))
      if (receipts.some(({ pin }) => !pin.held)) throw new Error('pins were lost')
      const all = asked.reduce((sum, { count }) => sum + count, 0) / pins
      return { figure: asked.reduce((sum, { ms }) => sum + ms, 0) / all, statements: asked.length / all }
    }
    return [
      { id: 'alkblobs', name: 'alkblobs', note: 'in statements of up to 1,000 pins, each judged', run: renewals },
      {
        id: 'hand',
        name: 'one UPDATE of all by hand',
        note: 'judges nothing',
        run: () => milliseconds(() => sql.unsafe("UPDATE bench_renew_raw SET expires_at = now() + interval '1 minute'"))
      }
    ]
  },
  ratiosOf: ({ scale }) => [
    {
      id: 'pg-renew',
      value: round => round.alkblobs.statements,
      atMost: Math.ceil(scale.pg.pins / 1_000),
      unit: 'statements',
      against: 'one for each 1,000 pins of a renewal'
    }
  ]
}

/** The engine, and what its catalog was asked to renew: each call is one statement. */
function watched(definition, asked) {
  return {
    ...definition,
    async open(context) {
      const engine = await definition.open(context)
      const renew = async (request, call) => {
        const from = performance.now()
        const lost = await engine.catalog.renew(request, call)
        asked.push({ count: request.pins.length, ms: performance.now() - from })
        return lost
      }
      return { ...engine, catalog: { ...engine.catalog, renew } }
    }
  }
}

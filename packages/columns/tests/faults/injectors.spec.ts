// Every call that the facade makes of an engine fails: once and for good, before its effect and after it. Each ends in time, with a typed
// error or well; trying again succeeds; nothing acknowledged is lost; and one sweep later nothing is left.
import {
  assertWhole,
  away,
  type Driver,
  everyFailureOf,
  FaultPlan,
  faulty,
  fullDisk,
  type Strike,
  steps,
  World
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { noServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { EMBEDDED, type Kind, makePool, ON_SERVER } from './subjects.js'

const DRIVERS: Readonly<Record<string, Driver>> = {
  mem: 'memory',
  local: 'files',
  sqlite: 'sqlite',
  postgres: 'postgres',
  pglo: 'postgres'
}
const driverOf = ({ engine }: Strike): Driver => DRIVERS[engine] ?? 'memory'
const LIMIT_MS = 300_000
const isLong = process.env.ALKBLOBS_LONG === '1'

async function everyFailureOn(
  kind: Kind,
  fault: { when: 'before' | 'after'; lasting: 'once' | 'for good' }
): Promise<number> {
  const pool = await makePool(kind)
  const plan = new FaultPlan()
  const world = new World(pool.subject, definition => faulty(definition, plan))
  // What takes effect and then fails is a lost answer; what never takes effect is a medium without room.
  const error = fault.when === 'after' ? away : fullDisk
  const how = { kind: 'fail', error: (at: Strike) => error(driverOf(at)) } as const
  let struck = 0
  try {
    for (const step of pool.steps) struck += (await everyFailureOf(world, step, { ...fault, plan, how })).length
    await assertWhole(world)
  } finally {
    await world.close()
    await pool.remove()
  }
  return struck
}

const reason = noServer()
const faults = [
  { when: 'before', lasting: 'once' },
  { when: 'before', lasting: 'for good' },
  { when: 'after', lasting: 'once' },
  { when: 'after', lasting: 'for good' }
] as const

describe.each(EMBEDDED)('on %s', kind => {
  it.each(faults)('a failure $when the effect of a call, $lasting', { timeout: LIMIT_MS }, async fault => {
    expect(await everyFailureOn(kind, fault)).toBeGreaterThan(steps.length)
  })
})

// On a server every call takes its time, so each way of failing has one kind of pool; the long form tries them all.
const onServer: [Kind, (typeof faults)[number]][] = isLong
  ? ON_SERVER.flatMap(kind => faults.map((fault): [Kind, (typeof faults)[number]] => [kind, fault]))
  : [
      ['postgres + pglo', faults[0]],
      ['postgres + local', faults[3]],
      ['postgres + pglo', faults[2]],
      ['mem + pglo', faults[0]]
    ]

describe.skipIf(reason !== undefined)(`on a server${reason === undefined ? '' : ` (${reason})`}`, () => {
  it.each(onServer)('%s, %j', { timeout: LIMIT_MS }, async (kind, fault) => {
    expect(await everyFailureOn(kind, fault)).toBeGreaterThan(steps.length)
  })
})

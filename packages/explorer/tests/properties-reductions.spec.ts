/** The reductions of the search against a plain enumeration: they may cut walks, never an end that a schedule can come to. */
import { describe, expect, it } from 'vitest'
import { type Configuration, LONG_MS } from '../src/configuration.js'
import { pin, put, remove, sweep } from '../src/operations.js'
import { type Found, type Reductions, search } from '../src/search.js'
import { isReplaying, SEARCH_TIMEOUT_MS } from './searching.js'

const refers = { refers: true } as const

const small: readonly Configuration[] = [
  {
    name: 'two keys, no sweep',
    form: 'durable',
    before: [put('K1'), put('K2')],
    actors: [
      { on: 'A', does: [pin('K1', refers)] },
      { on: 'B', does: [remove('K1'), remove('K2')] }
    ]
  },
  {
    name: 'two deletes of one key, and a put',
    form: 'durable',
    before: [put('K1')],
    actors: [
      { on: 'A', does: [remove('K1')] },
      { on: 'B', does: [remove('K1')] },
      { on: 'C', does: [put('K1', { keeps: true })] }
    ]
  },
  {
    name: 'a sweep and a put',
    form: 'durable',
    before: [put('K1'), sweep()],
    actors: [
      { on: 'A', does: [put('K1')] },
      { on: 'B', does: [sweep()] }
    ]
  },
  {
    name: 'inline, a sweep and a pin',
    form: 'inline',
    before: [put('K1')],
    actors: [
      { on: 'A', does: [pin('K1', refers)] },
      { on: 'B', does: [sweep()] }
    ]
  },
  {
    name: 'large bodies, one that loses',
    form: 'durable',
    large: true,
    actors: [
      { on: 'A', does: [put('K1', { streams: true })] },
      { on: 'B', does: [put('K1', { streams: true })] }
    ]
  },
  {
    name: 'a crash',
    form: 'durable',
    before: [put('K1'), sweep()],
    events: [{ kind: 'crash', of: 'A' }],
    mayFail: true,
    actors: [
      { on: 'A', does: [put('K1')] },
      { on: 'B', does: [remove('K1')] }
    ]
  },
  {
    name: 'a fleet, and time that passes',
    form: 'durable',
    fleet: true,
    before: [put('K1')],
    events: [{ kind: 'pause', ms: LONG_MS }],
    mayFail: true,
    actors: [
      { on: 'A', does: [pin('K1', { keeps: true })] },
      { on: 'B', does: [remove('K1')] }
    ]
  }
]

async function endsOf(
  configuration: Configuration,
  reductions: Reductions
): Promise<Found & { ends: ReadonlySet<string> }> {
  const ends = new Set<string>()
  const found = await search(configuration, { ...reductions, onEnd: end => void ends.add(end) })
  expect(found.isComplete).toBe(true)
  return { ...found, ends }
}

describe.skipIf(isReplaying)('reductions', () => {
  for (const configuration of small) {
    it(`${configuration.name}: every end is reached with them`, { timeout: SEARCH_TIMEOUT_MS }, async () => {
      const plain = await endsOf(configuration, { hashes: false, sleeps: false })
      const asleep = await endsOf(configuration, { hashes: false })
      const hashed = await endsOf(configuration, { sleeps: false })
      const both = await endsOf(configuration, {})
      for (const { ends } of [asleep, hashed, both]) expect(ends).toEqual(plain.ends)

      expect(both.states).toBe(hashed.states)
      expect(asleep.schedules).toBeLessThanOrEqual(plain.schedules)
      expect(both.schedules).toBeLessThanOrEqual(hashed.schedules)

      const pointed = await endsOf(configuration, { stills: false })
      expect(both.ends).toEqual(pointed.ends)
    })
  }

  it('leave out most of what only permutes independent steps', { timeout: SEARCH_TIMEOUT_MS }, async () => {
    const [twoKeys] = small as [Configuration]
    const plain = await endsOf(twoKeys, { hashes: false, sleeps: false })
    const both = await endsOf(twoKeys, {})
    expect(both.schedules * 4).toBeLessThan(plain.schedules)
  })
})

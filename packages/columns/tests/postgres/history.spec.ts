/** The checker of histories finds what it is there for: each kind of violation, planted into a history that is right. */
import { describe, expect, it } from 'vitest'
import { type Event, type History, violations } from './history.js'

/** Two processes: one puts, references and releases, the other sweeps. */
const right: History = {
  events: [
    { op: 'absent', key: 'a', from: 0, to: 10, by: 'put' },
    { op: 'made', by: 'put', count: 1 },
    { op: 'protect', id: 'pin 1', key: 'a', at: 11 },
    { op: 'lease', id: 'sweep 1', at: 12 },
    { op: 'effect', id: 'sweep 1', at: 20 },
    { op: 'protect', id: 'reference 1', key: 'a', at: 30 },
    { op: 'stands', id: 'pin 1', at: 31 },
    { op: 'stands', id: 'reference 1', at: 40 },
    { op: 'lease', id: 'sweep 2', at: 45 },
    { op: 'effect', id: 'sweep 2', at: 50 },
    { op: 'removed', by: 'delete', count: 1 },
    { op: 'absent', key: 'a', from: 55, to: 60, by: 'get' },
    { op: 'made', by: 'put', count: 1 },
    { op: 'protect', id: 'pin 2', key: 'a', at: 70 },
    { op: 'stands', id: 'pin 2', at: 90 },
    { op: 'failed', what: 'put', code: 'ERR_BLOB_PIN_LOST', message: 'lost' },
    { op: 'unknown', made: 1, removed: 0 }
  ],
  audit: [
    { key: 'a', what: 'made', at: 9 },
    { key: 'a', what: 'removed', at: 50 },
    { key: 'a', what: 'made', at: 65 },
    { key: 'b', what: 'made', at: 80 }
  ],
  left: ['b', 'a']
}

const doctored = (...more: Event[]) => violations({ ...right, events: [...right.events, ...more] })

describe('the checker of histories', () => {
  it('finds nothing in one that is right', () => {
    expect(violations(right)).toEqual([])
  })

  it.each(['get', 'put', 'delete'])('finds a %s that saw a pinned entry absent', by => {
    expect(doctored({ op: 'absent', key: 'a', from: 75, to: 80, by })).toEqual([
      `a was absent from 75 to 80 (${by}), protected by pin 2 from 70 to 90`
    ])
  })

  it('finds one that saw a referenced entry absent', () => {
    expect(doctored({ op: 'absent', key: 'a', from: 32, to: 39, by: 'get' })[0]).toMatch(/protected by reference 1/)
  })

  it('finds a removal by the catalog under a pin', () => {
    const audit = right.audit.map(row => (row.what === 'removed' ? { ...row, at: 25 } : row))
    expect(violations({ ...right, audit })[0]).toMatch(/the catalog.*protected by pin 1/)
  })

  it('leaves alone what overlaps a protection and may have come before or after it', () => {
    expect(doctored({ op: 'absent', key: 'a', from: 60, to: 75, by: 'get' })).toEqual([])
    expect(doctored({ op: 'absent', key: 'a', from: 85, to: 91, by: 'get' })).toEqual([])
    expect(doctored({ op: 'absent', key: 'b', from: 75, to: 80, by: 'get' })).toEqual([])
    // Nobody has seen this pin stand: it may have been lost at once.
    expect(
      doctored({ op: 'protect', id: 'pin 3', key: 'c', at: 1 }, { op: 'absent', key: 'c', from: 5, to: 6, by: 'get' })
    ).toEqual([])
  })

  it('finds two leases that had effects at the same time', () => {
    expect(doctored({ op: 'effect', id: 'sweep 1', at: 46 })).toEqual([
      'the leases sweep 1 and sweep 2 had effects at the same time'
    ])
  })

  it('finds entries that are left and were never made, are made and are not left, and are made or removed twice', () => {
    expect(violations({ ...right, left: ['a', 'b', 'c'] })[0]).toMatch(/2 entries made and not removed, 3 left/)
    expect(violations({ ...right, left: ['a'] })[0]).toMatch(/2 entries made and not removed, 1 left/)
    const again = { key: 'b', what: 'made', at: 81 } as const
    expect(violations({ ...right, audit: [...right.audit, again] })[0]).toBe('b was made twice')
  })

  it('finds counts that were told and are not so, beyond what nobody was told', () => {
    const removed = (by: 'delete' | 'sweep') => ({ op: 'removed', by, count: 1 }) as const
    expect(doctored(removed('delete'))).toEqual(['1 entries were removed, 2 were told, and of 0 it is not known'])
    // A candidate whose entry a delete took is counted by the sweep that ends it, once.
    expect(doctored(removed('sweep'))).toEqual([])
    expect(doctored(removed('sweep'), removed('sweep'))[0]).toMatch(/^1 entries were removed, 3 were told/)
    const silent = right.events.filter(({ op }) => op !== 'made')
    expect(violations({ ...right, events: silent })).toEqual([
      '3 entries were made, 0 were told, and of 1 it is not known'
    ])
  })

  it('finds damaged bytes and failures that are none of ours', () => {
    expect(doctored({ op: 'damaged', key: 'a', at: 35 })).toEqual(['a was read damaged at 35'])
    const failed = { op: 'failed', what: 'get', code: undefined, message: 'undefined is not a function' } as const
    expect(doctored(failed)).toEqual(['get failed without a code of ours: undefined is not a function'])
  })
})

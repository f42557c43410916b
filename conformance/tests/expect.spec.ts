/** An assertion that cannot fail proves nothing: each is shown to fail here. */
import { describe, expect, test } from 'vitest'
import { becomes, equal, holds, PropertyViolation, present, refuses, sameBytes } from '../src/expect.js'
import { countsOf, expectCounts } from '../src/sweeping.js'

const bytes = (...values: number[]) => Uint8Array.from(values)

describe('an assertion of the suite', () => {
  test('names its property, what was expected and what was found', () => {
    expect(() => equal(1, 2, 'one is two')).toThrow('one is two: expected 2, found 1')
    expect(() => equal({ a: [1] }, { a: [1] }, 'equal')).not.toThrow()
    expect(() => equal(0, -0, 'zeros')).toThrow(PropertyViolation)
  })

  test('fails where it should', async () => {
    expect(() => holds(false, 'it holds')).toThrow(PropertyViolation)
    expect(() => present(undefined, 'it is there')).toThrow(PropertyViolation)
    expect(present(0, 'zero is there')).toBe(0)
    expect(() => sameBytes(bytes(1, 2), bytes(1, 3), 'same')).toThrow('same: expected byte 3 at 1, found byte 2')
    expect(() => sameBytes(bytes(1), bytes(1, 3), 'same')).toThrow('same: expected 2 bytes, found 1 bytes')
    await expect(
      refuses(
        () => 1,
        () => true,
        'refused'
      )
    ).rejects.toThrow('found success with 1')
    await expect(refuses(() => Promise.reject(new TypeError('x')), 'ERR_X', 'refused')).rejects.toThrow(
      PropertyViolation
    )
    const error = Object.assign(new Error('x'), { code: 'ERR_X' })
    await expect(refuses(() => Promise.reject(error), 'ERR_X', 'refused')).resolves.toBe(error)
  })

  test('waits for what has to come, and no longer than for that', async () => {
    let looks = 0
    await becomes(async () => ++looks === 3, 'third look')
    expect(looks).toBe(3)
  })

  test('finds a count that is off by one, and one that was not stated', () => {
    const zero = {
      scanned: 0,
      live: 0,
      alreadyStaged: 0,
      candidatesStaged: 0,
      deleted: 0,
      cancelledByArbitration: 0,
      bytesDeleted: 0
    }
    const report = { ...zero, failed: [], pinsReaped: 0, stagesReclaimed: 0, durationMs: 1 }
    expect(() => expectCounts(report, {}, 'nothing happened')).not.toThrow()
    for (const name of Object.keys(countsOf(report))) {
      expect(() => expectCounts({ ...report, [name]: 1 }, {}, 'nothing happened'), name).toThrow(PropertyViolation)
    }
    expect(() => expectCounts({ ...report, aborted: 'Cancelled' }, {}, 'it ended well')).toThrow(PropertyViolation)
  })
})

import type { CandidatePage } from '@alkblobs/core/engine'
import { describe, expect, test } from 'vitest'
import { Pace } from '../src/catalog/pace.js'

const found = (scanned: number, next: string | undefined): CandidatePage => ({
  scanned,
  live: scanned,
  alreadyStaged: 0,
  cancelled: [],
  keys: [],
  next
})

describe('the pace of a sweep', () => {
  /** How many entries each step looks at, if it takes so many milliseconds of 30,000 for each. */
  function steps(msOf: (count: number) => number, count = 8, scannedOf = (count: number) => count) {
    const pace = new Pace()
    let after: string | undefined
    return Array.from({ length: count }, (_, n) => {
      const looked = pace.countFrom(after, 1_000)
      after = `${n}`
      pace.took(found(scannedOf(looked), after), looked, msOf(looked), 30_000)
      return looked
    })
  }

  test('begins with little, gets longer as long as a step takes no time, and has an end', () => {
    expect(steps(count => count * 0.0002)).toEqual([8_000, 128_000, 384_000, ...Array(5).fill(512_000)])
  })

  test('settles where a step takes a part of the time of a call', () => {
    expect(steps(count => count * 0.02)).toEqual([8_000, 16_000, 32_000, 64_000, 128_000, ...Array(3).fill(128_000)])
    expect(steps(count => count * 0.3)).toEqual(Array(8).fill(8_000))
    expect(steps(count => count * 10)).toEqual(Array(8).fill(8_000))
  })

  test('makes long steps where each has to read the same table, however few entries it looks at', () => {
    expect(steps(count => 1_200 + count * 0.0002)).toEqual([
      8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 512_000
    ])
  })

  test('gets shorter where steps are over the share, or end with as many candidates as are asked for', () => {
    const slow = (count: number) => (count === 512_000 ? 3_001 : 0)
    expect(steps(slow, 4)).toEqual([8_000, 128_000, 512_000, 256_000])
    expect(
      steps(
        () => 0,
        5,
        count => Math.min(count, 10_000)
      )
    ).toEqual([8_000, 128_000, 64_000, 32_000, 16_000])
  })

  test('is a whole number of entries, however often a longer step was halved', () => {
    const pace = new Pace()
    const counts: number[] = []
    // Nine times as many, then three steps that are full, fifteen times as many, then four.
    for (const [n, ms] of [10.5, 0, 0, 0, 6.5, 0, 0, 0, 0, 0].entries()) {
      const count = pace.countFrom(n === 0 ? undefined : `${n - 1}`, 1_000)
      counts.push(count)
      pace.took(found(ms === 0 ? 1 : count, `${n}`), count, ms, 30_000)
    }
    expect(counts).toEqual([8_000, 72_000, 36_000, 18_000, 9_000, 135_000, 67_000, 33_000, 16_000, 8_000])
  })

  test('begins anew for whoever does not go on from the last step', () => {
    const pace = new Pace()
    for (const after of [undefined, 'elsewhere', undefined]) {
      expect(pace.countFrom(after, 10)).toBe(80)
      pace.took(found(80, 'here'), 80, 0, 30_000)
    }
    expect(pace.countFrom('here', 10)).toBe(1_280)
    pace.took(found(1_280, undefined), 1_280, 0, 30_000)
    expect(pace.countFrom(undefined, 10)).toBe(80)
  })
})

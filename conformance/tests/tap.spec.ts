/** Wrapping must forward everything and lose nothing. */
import { describe, expect, test } from 'vitest'
import { gate, override } from '../src/tap.js'

class Counter {
  #count = 0
  step = 2
  add() {
    this.#count += this.step
    return this.#count
  }
  get total() {
    return this.#count
  }
}

describe('an override', () => {
  test('forwards methods, getters and private state, and replaces only what it names', () => {
    const inner = new Counter()
    const outer = override(inner, { step: 5 })
    expect(outer.add()).toBe(2)
    expect(outer.total).toBe(2)
    expect(outer.step).toBe(5)
    expect('add' in outer).toBe(true)
    expect(override(inner, { add: () => 42 }).add()).toBe(42)
    expect(inner.total).toBe(2)
  })

  test('keeps an absent capability absent', () => {
    const inner: { readonly there: number; readonly more?: number } = { there: 1 }
    expect(override(inner, {}).more).toBeUndefined()
    expect('more' in override(inner, {})).toBe(false)
  })
})

describe('a gate', () => {
  test('holds whoever comes until it is opened, and nobody afterwards', async () => {
    const closed = gate()
    let passed = false
    const passing = closed.pass().then(() => {
      passed = true
    })
    await closed.reached
    expect(passed).toBe(false)
    closed.open()
    await passing
    await closed.pass()
    expect(passed).toBe(true)
  })
})

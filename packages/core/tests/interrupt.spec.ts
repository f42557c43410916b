import { describe, expect, it } from 'vitest'
import { Interrupt } from '../src/interrupt.js'
import { rejection } from './opened.js'

const never = () => new Promise<never>(() => {})

/** A signal that counts who listens. */
function watchedSignal() {
  const controller = new AbortController()
  const { signal } = controller
  let listeners = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--
    remove(...args)
  }
  return { controller, signal, listeners: () => listeners }
}

describe('an interrupt', () => {
  it('settles as the promise does while nothing fires', async () => {
    const interrupt = new Interrupt(new AbortController().signal, undefined)
    expect(await interrupt.wait(Promise.resolve(7))).toBe(7)
    expect(await rejection(interrupt.wait(Promise.reject(new Error('own'))))).toMatchObject({ message: 'own' })
    expect(interrupt.fired).toBe(false)
    expect(interrupt.reason()).toBeUndefined()
    interrupt.throwIfFired()
  })

  it.each<[string, unknown]>([
    ['an error', new Error('mine')],
    ['a string', 'mine'],
    ['null', null],
    ['zero', 0]
  ])('rejects a wait with the very reason of the signal: %s', async (_, reason) => {
    const [first, second] = [new AbortController(), new AbortController()]
    const interrupt = new Interrupt(first.signal, second.signal)
    const waiting = interrupt.wait(never()).catch(error => ({ error }))
    second.abort(reason)
    expect(await waiting).toEqual({ error: reason })
    expect(interrupt.fired).toBe(true)
  })

  it('that has fired rejects every wait at once, whatever the promise does later', async () => {
    const interrupt = new Interrupt(AbortSignal.abort(new Error('before')))
    expect(await rejection(interrupt.wait(never()))).toMatchObject({ message: 'before' })
    expect(await rejection(interrupt.wait(Promise.reject(new Error('own'))))).toMatchObject({ message: 'before' })
    expect(() => interrupt.throwIfFired()).toThrow('before')
  })

  it('fires no wait that is over', async () => {
    const controller = new AbortController()
    const interrupt = new Interrupt(controller.signal)
    const one = interrupt.wait(Promise.resolve(1))
    await one
    controller.abort(new Error('late'))
    expect(await one).toBe(1)
  })

  it('tells its listener of the first signal, also while nothing is waited for', () => {
    const controller = new AbortController()
    const interrupt = new Interrupt(controller.signal)
    const told: unknown[] = []
    interrupt.onFire(reason => told.push(reason))
    controller.abort('mine')
    expect(told).toEqual(['mine'])
  })

  it('holds one listener on each signal, however many waits there were, and none after dispose', async () => {
    const { controller, signal, listeners } = watchedSignal()
    const interrupt = new Interrupt(signal)
    for (let i = 0; i < 100; i++) await interrupt.wait(Promise.resolve(i))
    expect(listeners()).toBe(1)
    let told = 0
    interrupt.onFire(() => told++)
    interrupt.dispose()
    expect(listeners()).toBe(0)
    controller.abort()
    expect(told).toBe(0)
  })
})

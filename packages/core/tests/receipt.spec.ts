/** What a holder has in hand, one that it forgot, and what a pin says of itself. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { formatKey } from '../src/key.js'
import { PinState } from '../src/pin.js'
import { Receipts } from '../src/receipt.js'

const key = formatKey('blake3', Buffer.alloc(32, 7))

function pinState(): { state: PinState; ended: () => number; makeStale: () => void } {
  let [isCurrent, ended] = [true, 0]
  const keeper = {
    get isCurrent() {
      return isCurrent
    },
    end: () => void ended++
  }
  const state = new PinState(key, 42, keeper)
  const makeStale = () => {
    isCurrent = false
  }
  return { state, ended: () => ended, makeStale }
}

/** The end of objects, told by the test alone: what was registered, and how it is told. */
function registry() {
  const registered: { readonly held: object; readonly state: PinState }[] = []
  let tell = (_: PinState) => {}
  vi.stubGlobal(
    'FinalizationRegistry',
    class {
      constructor(told: (state: PinState) => void) {
        tell = told
      }
      register(held: object, state: PinState): void {
        registered.push({ held, state })
      }
    }
  )
  onTestFinished(() => void vi.unstubAllGlobals())
  return { registered, tell: (state: PinState) => tell(state) }
}

describe('a receipt', () => {
  it('carries key, length, whether it made the entry, and a pin of the same key', () => {
    const receipt = new Receipts(() => {}).receipt(key, 42, true, pinState().state)
    expect([receipt.key, receipt.length, receipt.created]).toEqual([key, 42, true])
    expect([receipt.pin?.key, receipt.pin?.length, receipt.pin?.held]).toEqual([key, 42, true])
  })

  it('without a pin has none, and releases nothing', async () => {
    const { registered } = registry()
    const receipt = new Receipts(() => {}).receipt(key, 42, false, undefined)
    expect([receipt.pin, receipt.created, registered]).toEqual([undefined, false, []])
    await receipt.release()
    await receipt[Symbol.asyncDispose]()
  })

  it('releases its pin, as does its own disposal', async () => {
    const one = pinState()
    await new Receipts(() => {}).receipt(key, 42, true, one.state).release()
    expect([one.ended(), one.state.released]).toEqual([1, true])
    const other = pinState()
    const receipt = new Receipts(() => {}).receipt(key, 42, true, other.state)
    await receipt[Symbol.asyncDispose]()
    expect([other.ended(), receipt.pin?.held]).toEqual([1, false])
  })

  it('that is forgotten is told of by its pin, unless that was released', () => {
    const { registered, tell } = registry()
    const forgotten: PinState[] = []
    const receipts = new Receipts(state => forgotten.push(state))
    const [one, other] = [pinState().state, pinState().state]
    const receipt = receipts.receipt(key, 42, true, one)
    const pin = receipts.pin(other)
    // The holder's own object is watched, and what is told is not that.
    expect(registered).toEqual([
      { held: receipt.pin, state: one },
      { held: pin, state: other }
    ])
    other.release()
    tell(one)
    tell(other)
    expect(forgotten).toHaveLength(1)
    expect(forgotten[0]).toBe(one)
  })
})

describe('a pin', () => {
  it('is held until it is released, lost, or not renewed in time', () => {
    const [released, lost, stale] = [pinState(), pinState(), pinState()]
    expect([released, lost, stale].map(({ state }) => state.held)).toEqual([true, true, true])
    released.state.release()
    lost.state.lose()
    stale.makeStale()
    expect([released, lost, stale].map(({ state }) => state.held)).toEqual([false, false, false])
    expect([released, lost, stale].map(({ state }) => state.released)).toEqual([true, false, false])
  })

  it('ends once, however often it is released', () => {
    const { state, ended } = pinState()
    state.release()
    state.release()
    expect(ended()).toBe(1)
  })

  it('that is lost tells so by one signal, before and after somebody asked for it, and what to do', () => {
    const { state, ended } = pinState()
    const { signal } = state
    expect([signal.aborted, state.signal]).toEqual([false, signal])
    state.lose()
    expect(signal.aborted).toBe(true)
    expect(signal.reason).toBeInstanceOf(Error)
    expect((signal.reason as Error).message).toContain(key)
    expect((signal.reason as Error).message).toMatch(/lost.*put the content again/)
    expect([state.signal, ended()]).toEqual([signal, 0])

    const late = pinState().state
    late.lose()
    expect([late.signal.aborted, late.signal]).toEqual([true, late.signal])
    expect((late.signal.reason as Error).message).toContain(key)
  })

  it('that is released never fires', () => {
    const { state } = pinState()
    const { signal } = state
    state.release()
    expect([signal.aborted, state.signal.aborted]).toEqual([false, false])
  })
})

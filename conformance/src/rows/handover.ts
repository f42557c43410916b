/** INV-11: a protection handed from a pin to a reference is never seen by a sweep or a delete as neither. */

import type { Pin, Store } from '@alkblobs/core'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, sameBytes, settled } from '../expect.js'
import type { StoreFactory } from '../factory.js'
import { row } from '../row.js'
import { putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { watch } from '../tap.js'

/** The points of a collection: each engine call, before and after, and each step of reading its sources. */
interface Points {
  readonly store: Store
  /** Runs `act` at the nth point from now; answers whether the point was reached when `work` has ended. */
  at(nth: number, act: () => Promise<unknown>, work: () => Promise<unknown>): Promise<boolean>
}

async function pointed(factory: StoreFactory, references: Set<string>): Promise<Points> {
  let passed = 0
  let target = 0
  let act: (() => Promise<unknown>) | undefined
  const point = async () => {
    if (act === undefined) return
    passed += 1
    if (passed < target) return
    const run = act
    act = undefined
    await run()
  }
  const store = await factory.open({ wrap: watch({ before: point, after: point }) })
  store.protect({
    name: 'enumerated',
    async *live() {
      // A snapshot, as a query would take it: what is referenced later is not in it.
      const snapshot = [...references]
      await point()
      yield* snapshot
      await point()
    }
  })
  store.protect({
    name: 'asked',
    async isLive(keys) {
      const answer = keys.filter(key => references.has(key))
      await point()
      return answer
    }
  })
  return {
    store,
    async at(nth, chosen, work) {
      passed = 0
      target = nth
      act = chosen
      await work()
      const reached = act === undefined
      act = undefined
      return reached
    }
  }
}

// O01, O02
/**
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/spec/sweep.md#pins
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const duringSweep = row({
  name: 'a_pin_handed_over_to_a_reference_at_any_point_of_a_sweep_keeps_its_entry',
  statement: 'Reference written, then pin released, at any point of a staging or executing sweep: the entry stays.',
  stamps: ['docs/spec/sweep.md#invariants', 'docs/spec/sweep.md#pins', 'docs/adr/005-windows-and-sweeps.md#decision'],
  invariant: 'INV-11',
  cases: ['O01', 'O02'],
  async run(factory) {
    const references = new Set<string>()
    const { store, at } = await pointed(factory, references)
    const length = tierLengths(factory).at(-1) ?? 1
    // The pin may be the put's own, or taken on an entry that a sweep has staged: then the sweep executes while it changes hands.
    for (const staged of store.form === 'durable' ? [false, true] : [false]) {
      for (let nth = 1, reached = true; reached; nth += 1) {
        const bytes = bytesOf(length, nth)
        references.clear()
        const receipt = await store.put(bytes)
        let pin: Pin | undefined = receipt.pin
        if (staged) {
          await receipt.release()
          await store.sweep()
          pin = await store.pin(receipt.key)
        }
        const handover = async () => {
          references.add(receipt.key)
          await pin?.release()
        }
        reached = await at(nth, handover, () => store.sweep())
        if (!reached) await handover()
        const blob = present(await store.get(receipt.key), `the entry is there (point ${nth})`)
        sameBytes(await blob.bytes(), bytes, `the entry is whole (point ${nth})`)
        await store.sweep()
        equal(await store.has(receipt.key), true, `the reference keeps it afterwards (point ${nth})`)
        references.clear()
        await store.delete(receipt.key)
        holds(nth > 5 || reached, 'the handover was tried at many points')
      }
    }
    await store.close()
    await factory.teardown()
  }
})

// O01 against a delete
/**
 * Contract stamp: docs/spec/sweep.md#direct-delete
 * Contract stamp: docs/spec/sweep.md#pins
 */
const duringDelete = row({
  name: 'a_pin_handed_over_to_a_reference_at_any_point_of_a_delete_keeps_its_entry',
  statement:
    'Pin taken, reference written, pin released, at any point of a delete: the entry stays, or the pin was refused.',
  stamps: ['docs/spec/sweep.md#direct-delete', 'docs/spec/sweep.md#pins'],
  invariant: 'INV-11',
  cases: ['O01', 'O12'],
  async run(factory) {
    const references = new Set<string>()
    const { store, at } = await pointed(factory, references)
    const length = tierLengths(factory).at(-1) ?? 1
    for (let nth = 1, reached = true; reached; nth += 1) {
      const bytes = bytesOf(length, nth)
      references.clear()
      const { key } = await putReleased(store, bytes)
      await releasesArrived(store)
      let granted = false
      const handover = async () => {
        const pin = await store.pin(key)
        granted = pin !== undefined
        if (granted) references.add(key)
        await pin?.release()
      }
      reached = await at(nth, handover, () => settled(store.delete(key)))
      if (granted) {
        const blob = present(await store.get(key), `what was pinned and referenced is there (point ${nth})`)
        sameBytes(await blob.bytes(), bytes, `what was pinned and referenced is whole (point ${nth})`)
      }
      references.clear()
      await store.delete(key)
    }
    await store.close()
    await factory.teardown()
  }
})

// O02: a put that begins before the sources are read and whose reference is written after
/**
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 */
const putDuringSources = row({
  name: 'a_put_that_runs_while_the_sources_are_read_keeps_its_entry',
  statement: 'A put begun before and referenced after the sources took their snapshot is protected through that sweep.',
  stamps: ['docs/spec/sweep.md#invariants', 'docs/spec/sweep.md#liveness-sources'],
  invariant: 'INV-11',
  cases: ['O02'],
  async run(factory) {
    const store = await factory.open()
    const references = new Set<string>()
    let during: (() => Promise<void>) | undefined
    store.protect({
      name: 'slow',
      async live() {
        const snapshot = [...references]
        await during?.()
        return snapshot
      }
    })
    // A pool that was never written has nothing to sweep, and asks nobody.
    await store.put('something')
    for (const length of tierLengths(factory)) {
      for (const there of [false, true]) {
        const bytes = bytesOf(length, there ? 1 : 2)
        if (there) {
          await putReleased(store, bytes)
          if (store.form === 'durable') await store.sweep()
        }
        let key: string | undefined
        during = async () => {
          during = undefined
          const receipt = await store.put(bytes)
          key = receipt.key
          references.add(receipt.key)
          await receipt.release()
        }
        equal((await store.sweep()).aborted, undefined, 'the sweep runs to its end')
        const blob = present(await store.get(present(key, 'the put ran')), 'the entry is there after the sweep')
        sameBytes(await blob.bytes(), bytes, 'the entry is whole')
        await store.sweep()
        equal(await store.has(present(key, 'the put ran')), true, 'its reference keeps it')
      }
    }
    await store.close()
    await factory.teardown()
  }
})

// O08, embedded: put, then get, beside a sweeper that never rests
/**
 * Contract stamp: docs/spec/sweep.md#invariants
 */
const besideSweeper = row({
  name: 'a_put_beside_a_restless_sweeper_can_always_be_read',
  statement: 'While sweeps run without a pause, every put that resolved is readable as long as it is held.',
  stamps: ['docs/spec/sweep.md#invariants'],
  invariant: 'INV-11',
  cases: ['O08'],
  async run(factory) {
    const store = await factory.open()
    const sweeper = (await factory.second?.(store)) ?? store
    sweeper.protect(sourceOver([]))
    let running = true
    let sweeps = 0
    const sweeping = (async () => {
      while (running) {
        equal((await sweeper.sweep()).aborted, undefined, 'every sweep runs to its end')
        sweeps += 1
        await new Promise<void>(done => setImmediate(done))
      }
    })()
    const lengths = tierLengths(factory)
    const putting = async () => {
      for (let time = 0; time < 150; time += 1) {
        // Few contents, so that most puts meet an entry that is staged or about to go.
        const bytes = bytesOf(lengths[time % lengths.length] ?? 1, time % 5)
        const receipt = await store.put(bytes)
        const blob = present(await store.get(receipt.key), `put ${time} is there`)
        sameBytes(await blob.bytes(), bytes, `put ${time} is whole`)
        await receipt.release()
      }
    }
    const stop = () => {
      running = false
    }
    await Promise.all([sweeping, putting().finally(stop)])
    holds(sweeps > 0, 'sweeps ran beside the puts')
    if (sweeper !== store) await sweeper.close()
    await store.close()
    await factory.teardown()
  }
})

export const handoverRows = [duringSweep, duringDelete, putDuringSources, besideSweeper]

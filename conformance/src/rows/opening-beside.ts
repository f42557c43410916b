/** INV-7 where two stores meet at the very beginning: one opens, or stages, while the other writes for the first time. */
import type { Store } from '@alkblobs/core'
import { bytesOf, tierLengths } from '../content.js'
import { equal, present, sameBytes } from '../expect.js'
import { row } from '../row.js'
import { putReleased } from '../sweeping.js'
import { tapped } from '../tap.js'

/** Runs once: the first to come does it, the others pass. */
function once(act: () => Promise<unknown>): () => Promise<void> {
  let done = false
  return async () => {
    if (done) return
    done = true
    await act()
  }
}

type Step = 'record' | 'claim'

/** Runs `act` beside one step of an opening: just before it looks, or just after. */
function besideLook(step: Step, when: 'before' | 'after', act: () => Promise<void>) {
  const held = async <T>(is: boolean, look: () => Promise<T>): Promise<T> => {
    if (is && when === 'before') await act()
    const seen = await look()
    if (is && when === 'after') await act()
    return seen
  }
  return (definition: Parameters<typeof tapped>[0]) =>
    tapped(definition, {
      catalog: inner => ({
        meta: {
          read: call => held(step === 'record', () => inner.meta.read(call)),
          compareAndSet: (...args) => inner.meta.compareAndSet(...args)
        }
      }),
      bodies: inner => ({ claimed: call => held(step === 'claim', () => inner.claimed(call)) })
    })
}

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/engine-contract.md#claims
 */
const opensBeside = row({
  name: 'a_store_opens_while_another_makes_the_pool',
  statement:
    "Opening looks at record and claim one after the other; another store's first put before, between or after the looks refuses nothing.",
  stamps: ['docs/spec/store-api.md#opening', 'docs/spec/engine-contract.md#claims'],
  invariant: 'INV-7',
  needs: ['second'],
  async run(factory) {
    const length = tierLengths(factory).at(-1) ?? 1
    for (const step of ['record', 'claim'] as const) {
      for (const when of ['before', 'after'] as const) {
        const store = await factory.open()
        const bytes = bytesOf(length, 8)
        const put = once(() => store.put(bytes))
        const opened: Store | undefined = await factory.second?.(store, { wrap: besideLook(step, when, put) })
        await put()
        const other = present(opened, 'another store')
        const { key, created } = await other.put(bytes)
        equal(created, false, `the store that opened (put ${when} its look at the ${step}) is one with the other`)
        sameBytes(await present(await other.get(key), 'the entry is there').bytes(), bytes, 'and reads what it wrote')
        await other.close()
        await store.close()
      }
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/engine-contract.md#stages
 */
const slowStage = row({
  name: 'a_renewal_never_overtakes_the_stage_it_renews',
  statement: 'A put whose stage takes its time to be written is not called lost by a renewal that runs meanwhile.',
  stamps: ['docs/spec/engine-contract.md#stages'],
  invariant: 'INV-7',
  needs: ['dual-tier'],
  async run(factory) {
    let beside = async () => {}
    const slow = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        catalog: inner => ({
          async stage(stages, call) {
            await beside()
            await inner.stage(stages, call)
          }
        })
      })
    const store = await factory.open({ wrap: slow })
    const { key } = await putReleased(store, bytesOf(10, 1))
    // A delete of its own renews everything that the store holds before it begins.
    beside = once(() => store.delete(key))
    const bytes = bytesOf(tierLengths(factory).at(-1) ?? 1, 2)
    const receipt = await store.put(bytes)
    equal([receipt.created, await store.has(key)], [true, false], 'the put is an entry, and the renewal has run')
    await store.close()
    await factory.teardown()
  }
})

export const openingBesideRows = [opensBeside, slowStage]

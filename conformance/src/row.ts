/** A row: one named property of a store that any factory can be held against. */
import type { Store } from '@alkblobs/core'
import type { OpenTuning, StoreFactory, Trait } from './factory.js'
import type { InvariantId } from './invariants.js'

/** One property, independently runnable. It fails by throwing an error that names the property and what was expected. */
export interface Row {
  /** The property in snake_case; never an engine's name. */
  readonly name: string
  /** The property in one sentence. */
  readonly statement: string
  /** Where the property is pinned: `docs/spec/store-api.md#putting`. */
  readonly stamps: readonly string[]
  readonly invariant: InvariantId
  /** What a factory must declare for the row to apply. Empty: every factory. */
  readonly needs: readonly Trait[]
  /** The public bug reports this row holds against the store. */
  readonly cases: readonly string[]
  /** Opens what it needs and tears it down last; a row that throws leaves the teardown to its runner. */
  run(factory: StoreFactory): Promise<void>
}

/** A row as it is written down; what is left out is empty. */
export type RowDraft = Omit<Row, 'needs' | 'cases'> & Partial<Pick<Row, 'needs' | 'cases'>>

/** Completes a row and checks what every row must have, so that a malformed one fails when the suite loads. */
export function row(draft: RowDraft): Row {
  if (!/^[a-z0-9]+(_[a-z0-9]+)+$/.test(draft.name)) throw new TypeError(`not the name of a property: ${draft.name}`)
  if (draft.stamps.length === 0) throw new TypeError(`${draft.name} has no stamp`)
  return { needs: [], cases: [], ...draft }
}

/** The usual life of a row: open one store, hold it against the property, close it, tear down. */
export function over(
  body: (store: Store, factory: StoreFactory) => Promise<void>,
  tuning: OpenTuning = {}
): (factory: StoreFactory) => Promise<void> {
  return async factory => {
    const store = await factory.open(tuning)
    await body(store, factory)
    await store.close()
    await factory.teardown()
  }
}

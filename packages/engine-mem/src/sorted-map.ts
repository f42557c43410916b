/**
 * A map that can also be walked in the order of its keys.
 *
 * New keys wait in a list of their own and are merged into the sorted one when somebody walks, so a burst of writes costs
 * one merge and a walk of many pages none. A deleted key stays in the sorted list until the next merge; walks skip it.
 *
 * It is made empty: `Map`'s constructor would call `set` before the lists exist.
 */
export class SortedMap<Key extends string, Value> extends Map<Key, Value> {
  #sorted: Key[] = []
  #added: Key[] = []

  override set(key: Key, value: Value): this {
    if (!this.has(key)) this.#added.push(key)
    return super.set(key, value)
  }

  /** Walks the entries with keys after `after` (exclusive) in key order. The map must not change while it walks. */
  *after(after: string | undefined): Generator<[Key, Value]> {
    this.#merge()
    for (let at = after === undefined ? 0 : this.#firstAfter(after); at < this.#sorted.length; at++) {
      const key = this.#sorted[at] as Key
      if (this.has(key)) yield [key, this.get(key) as Value]
    }
  }

  #firstAfter(key: string): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#sorted[middle] as Key) <= key) low = middle + 1
      else high = middle
    }
    return low
  }

  #merge(): void {
    const crowdedWithDeleted = this.#sorted.length > 2 * this.size + 1_000
    if (this.#added.length === 0 && !crowdedWithDeleted) return
    const added = this.#added.sort()
    const merged: Key[] = []
    // A key that was deleted and set again stands in both lists, or twice in `added`: it is taken once.
    const take = (key: Key) => {
      if (this.has(key) && merged.at(-1) !== key) merged.push(key)
    }
    let at = 0
    for (const key of this.#sorted) {
      while (at < added.length && (added[at] as Key) < key) take(added[at++] as Key)
      take(key)
    }
    while (at < added.length) take(added[at++] as Key)
    this.#sorted = merged
    this.#added = []
  }
}

/**
 * Copies of small bodies. Each is cut from a slab that many of them share, and a slab whose copies have all been given back is used again:
 * a buffer of its own for each would cost an allocation outside the heap, and such allocations are most of what the garbage collector does
 * during small puts.
 *
 * Giving a copy back says that nobody reads it any more. Whoever is not sure, after a failure or a missed deadline, keeps it: then its slab
 * is never used again, and goes when the last who holds a copy of it is gone.
 */

const SLAB_LENGTH = 512 * 1024
/** Longer bodies waste too much of a slab's end, and are copied at the speed of memory anyway. */
const COPY_LENGTH_MAX = SLAB_LENGTH / 4
/** Slabs kept while no copy is in them: 4 MiB at most, and only until the garbage collector wants them. */
const SPARES_MAX = 8

class Slab {
  readonly memory = Buffer.allocUnsafeSlow(SLAB_LENGTH)
  used = 0
  /** Copies that were not given back. */
  copies = 0
}

let slab: Slab | undefined
const spares: WeakRef<Slab>[] = []

/** Bytes as they were when they were copied, in memory that nobody else writes to. */
class Copy {
  readonly bytes: Buffer
  readonly #slab: Slab | undefined

  constructor(bytes: Buffer, from: Slab | undefined) {
    this.bytes = bytes
    this.#slab = from
  }

  /** Gives the memory back; called at most once, and only by who knows that nobody reads the bytes any more. */
  giveBack(): void {
    const from = this.#slab
    if (from === undefined || --from.copies > 0) return
    from.used = 0
    if (from !== slab && spares.length < SPARES_MAX) spares.push(new WeakRef(from))
  }
}

export function copyOf(bytes: Uint8Array): Copy {
  const { length } = bytes
  if (length > COPY_LENGTH_MAX) return new Copy(Buffer.from(bytes), undefined)
  if (slab === undefined || slab.used + length > SLAB_LENGTH) slab = spare() ?? new Slab()
  const copy = slab.memory.subarray(slab.used, slab.used + length)
  copy.set(bytes)
  slab.used += length
  slab.copies++
  return new Copy(copy, slab)
}

function spare(): Slab | undefined {
  while (spares.length > 0) {
    const kept = spares.pop()?.deref()
    if (kept !== undefined) return kept
  }
  return undefined
}

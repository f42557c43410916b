/**
 * What a step reads and writes, and from that whether two steps may change places.
 *
 * A resource is a kind and perhaps a name: `key:K1` stands for everything that the pool keeps of one key (entry, body inline,
 * pins, window row, marks, epoch), `stage:x` for the row of one stage, `body:x` for what a body store keeps of it. A kind
 * without a name is all of its kind, `*` is everything.
 *
 * Two steps are independent if they are of different instances and neither writes what the other reads or writes. This is
 * conservative: steps of one instance share its process, so they never are; a key is one resource, though a call rarely
 * touches all of it; what looks through a table touches every row of it; and a clock that jumps touches everything. Independent
 * steps neither enable nor disable each other (an instance's next steps follow from what its own were answered), and in either
 * order they leave the same medium and give the same answers, which is what sleep sets ask of independence.
 */
export interface Footprint {
  readonly reads?: readonly Resource[]
  readonly writes?: readonly Resource[]
}

type Kind = 'key' | 'stage' | 'body' | 'trash' | 'lease' | 'record' | 'claim' | 'references' | '*'
export type Resource = Kind | `${Kind}:${string}`

interface Touching {
  readonly who: string
  readonly touches: Footprint
}

export function independent(one: Touching, other: Touching): boolean {
  if (one.who === other.who || isEverything(one) || isEverything(other)) return false
  const [a, b] = [one.touches, other.touches]
  return !meet(a.writes, b.writes) && !meet(a.writes, b.reads) && !meet(a.reads, b.writes)
}

/** A clock that jumps touches what states no touch too: an answer that arrives, a timer, a sequence that begins. */
function isEverything({ touches }: Touching): boolean {
  return touches.writes?.includes('*') === true
}

function meet(some: readonly Resource[] | undefined, others: readonly Resource[] | undefined): boolean {
  if (some === undefined || others === undefined) return false
  return some.some(one => others.some(other => overlap(one, other)))
}

function overlap(one: Resource, other: Resource): boolean {
  if (one === other || one === '*' || other === '*') return true
  return one.length < other.length ? other.startsWith(`${one}:`) : one.startsWith(`${other}:`)
}

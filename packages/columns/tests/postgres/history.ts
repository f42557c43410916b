/**
 * Judges the history of several processes over one pool, which each of them wrote down for itself as it went.
 *
 * Times are milliseconds of the clock that all of them share. What is claimed is rounded towards claiming less: a protection begins a
 * millisecond after it was acknowledged, and is known to have stood until the last moment at which its holder saw it stand.
 */

/** One line of a process's log. */
export type Event =
  /** A put or pin was acknowledged, or a reference committed under one: from now on the entry must be there. */
  | { readonly op: 'protect'; readonly id: string; readonly key: string; readonly at: number }
  /** The protection stood at that moment: its pin was held, or its reference not yet taken back. */
  | { readonly op: 'stands'; readonly id: string; readonly at: number }
  /** Somebody saw that there is no entry, made it anew, or removed it, at a moment in between. */
  | { readonly op: 'absent'; readonly key: string; readonly from: number; readonly to: number; readonly by: string }
  /** The bytes that were read were not those of the key. */
  | { readonly op: 'damaged'; readonly key: string; readonly at: number }
  | { readonly op: 'lease'; readonly id: string; readonly at: number }
  /** Something was staged, removed or dropped under that lease; `at` is when it began. */
  | { readonly op: 'effect'; readonly id: string; readonly at: number }
  /** Entries were made, or removed, and this process was told so. A sweep counts what a delete took from under it, too. */
  | { readonly op: 'made' | 'removed'; readonly by: 'put' | 'delete' | 'sweep'; readonly count: number }
  /** A call whose outcome nobody was told: it may have made or removed that many. */
  | { readonly op: 'unknown'; readonly made: number; readonly removed: number }
  | { readonly op: 'done'; readonly what: string }
  | { readonly op: 'failed'; readonly what: string; readonly code: string | undefined; readonly message: string }

/** What the catalog itself wrote down: every entry that was made or removed, in one row each. */
export interface Audited {
  readonly key: string
  readonly what: 'made' | 'removed'
  readonly at: number
}

export interface History {
  readonly events: readonly Event[]
  readonly audit: readonly Audited[]
  /** Keys of the entries that are left. */
  readonly left: readonly string[]
}

/** Everything that is wrong with a history, each as a sentence; empty if all of it is right. */
export function violations({ events, audit, left }: History): string[] {
  return [
    ...lostWhileProtected(events, audit),
    ...overlappingLeases(events),
    ...wrongCounts(events, audit, left),
    ...events.flatMap(event => {
      if (event.op === 'damaged') return [`${event.key} was read damaged at ${event.at}`]
      const isTyped = event.op !== 'failed' || event.code?.startsWith('ERR_BLOB_') === true
      return isTyped ? [] : [`${event.what} failed without a code of ours: ${event.message}`]
    })
  ]
}

interface Span {
  readonly id: string
  readonly from: number
  to: number
}

function lostWhileProtected(events: readonly Event[], audit: readonly Audited[]): string[] {
  const protections = new Map<string, Span & { readonly key: string }>()
  for (const event of events)
    if (event.op === 'protect')
      protections.set(event.id, { id: event.id, key: event.key, from: event.at, to: Number.NEGATIVE_INFINITY })
  for (const event of events) {
    const span = event.op === 'stands' ? protections.get(event.id) : undefined
    if (event.op === 'stands' && span !== undefined) span.to = Math.max(span.to, event.at)
  }
  const byKey = new Map<string, Span[]>()
  for (const span of protections.values()) byKey.set(span.key, [...(byKey.get(span.key) ?? []), span])
  const absences = [
    ...events.flatMap(event => (event.op === 'absent' ? [event] : [])),
    ...audit.flatMap(({ key, what, at }) => (what === 'removed' ? [{ key, from: at, to: at, by: 'the catalog' }] : []))
  ]
  return absences.flatMap(({ key, from, to, by }) =>
    (byKey.get(key) ?? [])
      .filter(span => span.from <= from && to <= span.to)
      .map(
        span =>
          `${key} was absent from ${from} to ${to} (${by}), protected by ${span.id} from ${span.from} to ${span.to}`
      )
  )
}

function overlappingLeases(events: readonly Event[]): string[] {
  const leases = new Map<string, Span>()
  for (const event of events)
    if (event.op === 'lease') leases.set(event.id, { id: event.id, from: event.at, to: Number.NEGATIVE_INFINITY })
  for (const event of events) {
    const span = event.op === 'effect' ? leases.get(event.id) : undefined
    if (event.op === 'effect' && span !== undefined) span.to = Math.max(span.to, event.at)
  }
  // One that had no effect excludes nobody that could be noticed.
  const spans = [...leases.values()].filter(({ from, to }) => from < to).sort((one, other) => one.from - other.from)
  return spans.slice(1).flatMap((span, at) => {
    const before = spans[at] as Span
    return span.from < before.to ? [`the leases ${before.id} and ${span.id} had effects at the same time`] : []
  })
}

function wrongCounts(events: readonly Event[], audit: readonly Audited[], left: readonly string[]): string[] {
  const found: string[] = []
  const there = new Set<string>()
  for (const { key, what } of audit) {
    if (what === 'made' ? there.has(key) : !there.has(key)) found.push(`${key} was ${what} twice`)
    if (what === 'made') there.add(key)
    else there.delete(key)
  }
  const [expected, actual] = [[...there].sort(), [...left].sort()]
  if (expected.join() !== actual.join())
    found.push(`${expected.length} entries made and not removed, ${actual.length} left`)
  for (const what of ['made', 'removed'] as const) {
    const audited = audit.filter(row => row.what === what).length
    const told = (by?: string) =>
      events.reduce((sum, event) => (event.op === what && (by ?? event.by) === event.by ? sum + event.count : sum), 0)
    const unknown = events.reduce((sum, event) => sum + (event.op === 'unknown' ? event[what] : 0), 0)
    const most = Math.max(...['put', 'delete', 'sweep'].map(told))
    if (most > audited || audited > told() + unknown)
      found.push(`${audited} entries were ${what}, ${told()} were told, and of ${unknown} it is not known`)
  }
  return found
}

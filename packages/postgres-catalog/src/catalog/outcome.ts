/** What a publication comes to, whichever way it goes. Items of one key share what the first of them does; the others find the entry. */
import { digestHexOf, type Entry, type Publication, type PublishOutcome } from '@alkblobs/core/engine'
import { AGAIN } from '../joiner.js'
import type { Entered } from './enter.js'
import { entryOf } from './entries.js'

export type Outcome = PublishOutcome | typeof AGAIN

/** Publications of one key in one transaction: `lead` is what is sent, the others find what it leaves. */
export interface Group {
  readonly lead: Publication
  readonly others: readonly Publication[]
}

/** By key, in hexadecimal digits. Whoever brings bytes leads: beside it one that asks only for what is there finds it. */
export function groupsOf(items: readonly Publication[]): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const item of items) {
    const hex = digestHexOf(item.key)
    const group = groups.get(hex)
    if (group === undefined) groups.set(hex, { lead: item, others: [] })
    else if (group.lead.bytes.kind === 'none') groups.set(hex, { lead: item, others: [group.lead, ...group.others] })
    else groups.set(hex, { lead: group.lead, others: [...group.others, item] })
  }
  return groups
}

/** In the order of keys, in which everybody makes and locks. */
export function inOrder(groups: ReadonlyMap<string, Group>): Group[] {
  return [...groups.values()].sort((one, other) => (one.lead.key < other.lead.key ? -1 : 1))
}

/** Of an item that heals nothing. */
export function outcomeOf(item: Publication, { made, locked, there, length, held, locator }: Entered): Outcome {
  if (made) return { outcome: 'created', entry: madeEntry(item) }
  // Neither made nor locked: it came or went while we looked, or somebody holds it.
  if (!locked) return item.bytes.kind === 'none' && !there ? { outcome: 'absent' } : AGAIN
  return { outcome: 'existed', entry: entryOf(item.key, length as bigint, held, locator) }
}

export function otherOf(lead: Outcome): Outcome {
  return lead !== AGAIN && 'entry' in lead ? { outcome: 'existed', entry: lead.entry } : lead
}

export function madeEntry({ key, length, bytes }: Pick<Publication, 'key' | 'length' | 'bytes'>): Entry {
  return bytes.kind === 'inline'
    ? entryOf(key, length, bytes.body.byteLength, null)
    : entryOf(key, length, 0, bytes.kind === 'staged' ? bytes.locator : null)
}

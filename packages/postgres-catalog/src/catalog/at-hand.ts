/**
 * Publications whose bytes are at hand or not needed: the steps of `publish.ts`, in one transaction of two messages. The first makes or
 * locks the entries and answers what became of each; the second tells the window, writes the pins and commits. No stage is
 * theirs and nothing is healed, so between the two nothing is asked.
 */
import type { Call, Publication } from '@alkblobs/core/engine'
import type { Answer, Decision } from '@alkblobs/postgres-session'
import { AGAIN } from '../joiner.js'
import { noPool, type Pool } from '../pool.js'
import { enteredOf, entering } from './enter.js'
import { checkProtocol } from './meta.js'
import { type Group, groupsOf, inOrder, type Outcome, otherOf, outcomeOf } from './outcome.js'
import { protecting } from './pins.js'

export function isAtHand({ bytes, healing }: Publication): boolean {
  return bytes.kind !== 'staged' && healing === undefined
}

/** `patience`: the statement that says how long rows are waited for; `waits`: whether locked entries are, or are left out. */
export function publishAtHand(
  pool: Pool,
  items: readonly Publication[],
  { patience, waits }: { readonly patience: string; readonly waits: boolean },
  call: Call
): Promise<ReadonlyMap<Publication, Outcome>> {
  const groups = inOrder(groupsOf(items))
  const leads = groups.map(({ lead }) => lead)
  return pool.exchange(call, noPool, {
    first: [{ text: patience }, entering(leads, waits)],
    decide: ([, entered]) => decisionOf(groups, entered as Answer)
  })
}

function decisionOf(groups: readonly Group[], { rows }: Answer): Decision<ReadonlyMap<Publication, Outcome>> {
  const outcomes = new Map<Publication, Outcome>()
  const safe: Publication[] = []
  for (const row of rows) {
    const [n, entered] = enteredOf(row)
    checkProtocol(entered.protocol)
    const { lead, others } = groups[n] as Group
    const outcome = outcomeOf(lead, entered)
    outcomes.set(lead, outcome)
    for (const other of others) outcomes.set(other, otherOf(outcome))
    if (outcome !== AGAIN && 'entry' in outcome) safe.push(lead, ...others)
  }
  return { result: outcomes, last: safe.length === 0 ? [] : protecting(safe) }
}

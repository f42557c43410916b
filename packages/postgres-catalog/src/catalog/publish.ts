/**
 * Makes entries, finds them, heals them: `publish`, and `pin`, which is a publication without bytes. A batch is one
 * transaction of at most six statements, whatever its size. Locks are taken in one order by everybody: stages, entries,
 * rows of the window, pins; in each table in the order of the primary key.
 *
 *   1. Stages are locked; those that are gone or expired are lost.
 *   2. Entries are made, or, where the key has one, locked FOR KEY SHARE. From here on nobody can remove them, and nobody can
 *      stage or mark them who has not committed. A batch does not wait for a locked entry; that item runs again alone.
 *   3. A healing points the entry at the new bytes, if it still lies where it was found broken.
 *   4. In a new statement, which sees everything committed before 2: rows of the window are marked as cancelled,
 *   5. and pins are written, stamped by the server's clock as late as can be.
 *
 * Where no item has a stage and none heals, 2, 4 and 5 are what there is to do, and go in two messages (`at-hand.ts`).
 */
import type { Call, Catalog, Publication, PublishOutcome, StageId } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { AGAIN, Joiner } from '../joiner.js'
import { noPool, type Pool } from '../pool.js'
import { isAtHand, publishAtHand } from './at-hand.js'
import { enterAll } from './enter.js'
import { isSamePlace } from './entries.js'
import { heal } from './heal.js'
import { checkProtocol } from './meta.js'
import { type Group, groupsOf, inOrder, madeEntry, type Outcome, otherOf, outcomeOf } from './outcome.js'
import { protect } from './pins.js'
import { endStages, lockStages } from './stages.js'

/** Longest one attempt waits for a row: a batch, so that its other items do not; a lone item, so that other lone ones do not. */
const JOIN_LOCK_MS = 100

const PATIENCE = `SELECT set_config('lock_timeout', '${JOIN_LOCK_MS}ms', true)`

export function publishOf(pool: Pool, lanes: number): Pick<Catalog, 'publish' | 'pin'> {
  const joiner = new Joiner<Publication, PublishOutcome>(
    {
      run: (items, alone, call) => run(pool, items, alone, call),
      bytesOf: ({ bytes }) => (bytes.kind === 'inline' ? bytes.body.byteLength : 0),
      nameOf: ({ key }) => key,
      isAlone: ({ healing }) => healing !== undefined,
      kindOf: ({ bytes }) => (bytes.kind === 'staged' ? 'staged' : 'at hand')
    },
    lanes,
    pool.lockTimeoutMs
  )
  return {
    publish: async (items, call) => ((await pool.isThere(call)) ? joiner.submit(items, call) : noPool()),
    async pin(items, call) {
      if (!(await pool.isThere(call))) return items.map(() => undefined)
      const none = { length: 0, bytes: { kind: 'none' }, trashDelayMs: 0 } as const
      const outcomes = await joiner.submit(
        items.map(({ key, pin, ttlMs }) => ({ key, pin: { row: pin, ttlMs }, ...none })),
        call
      )
      return outcomes.map(outcome => ('entry' in outcome ? outcome.entry : undefined))
    }
  }
}

async function run(pool: Pool, items: readonly Publication[], alone: boolean, call: Call): Promise<readonly Outcome[]> {
  const outcomes = items.every(isAtHand)
    ? await publishAtHand(pool, items, { patience: PATIENCE, waits: alone }, call)
    : await pool.once(call, noPool, async at => {
        // Sent ahead; a failure of what follows it is what matters.
        const patience = at.rows(PATIENCE)
        const [outcomes] = await Promise.all([publishAll(at, items, alone), patience])
        return outcomes
      })
  return items.map(item => outcomes.get(item) ?? AGAIN)
}

async function publishAll(
  at: Connection,
  items: readonly Publication[],
  waits: boolean
): Promise<ReadonlyMap<Publication, Outcome>> {
  const outcomes = new Map<Publication, Outcome>()
  const groups = groupsOf(await withStages(at, items, outcomes))
  if (groups.size === 0) return outcomes
  const leads = inOrder(groups).map(({ lead }) => lead)
  const protectedItems: Publication[] = []
  const endedStages: StageId[] = []
  for (const [hex, entered] of await enterAll(at, leads, waits)) {
    checkProtocol(entered.protocol)
    const { lead, others } = groups.get(hex) as Group
    const outcome = await healed(at, lead, outcomeOf(lead, entered))
    outcomes.set(lead, outcome)
    for (const other of others) outcomes.set(other, otherOf(outcome))
    if (outcome === AGAIN || !('entry' in outcome)) continue
    protectedItems.push(lead, ...others)
    if (outcome.outcome !== 'existed' && lead.bytes.kind === 'staged') endedStages.push(lead.bytes.stage)
  }
  const sent: Promise<void>[] = []
  if (endedStages.length > 0) sent.push(endStages(at, endedStages))
  if (protectedItems.length > 0) sent.push(protect(at, protectedItems))
  await all(sent)
  return outcomes
}

/** Waits for what was sent together. The first that fails is why the others do. */
async function all(sent: readonly Promise<void>[]): Promise<void> {
  for (const step of sent) step.catch(() => undefined)
  for (const step of sent) await step
}

/** The items that may be published: those whose stage is lost have their outcome. */
async function withStages(
  at: Connection,
  items: readonly Publication[],
  outcomes: Map<Publication, Outcome>
): Promise<readonly Publication[]> {
  const stages = items.flatMap(({ bytes }) => (bytes.kind === 'staged' ? [bytes.stage] : []))
  if (stages.length === 0) return items
  const held = await lockStages(at, stages)
  return items.filter(item => {
    if (item.bytes.kind !== 'staged' || held.has(item.bytes.stage)) return true
    outcomes.set(item, { outcome: 'stage-lost' })
    return false
  })
}

/** Points the entry at the item's bytes, if it is the one that was found broken. */
async function healed(at: Connection, item: Publication, outcome: Outcome): Promise<Outcome> {
  const { healing } = item
  if (healing === undefined || item.bytes.kind === 'none') return outcome
  if (outcome === AGAIN || outcome.outcome !== 'existed' || !isSamePlace(outcome.entry.place, healing)) return outcome
  return (await heal(at, outcome.entry, item)) ? { outcome: 'healed', entry: madeEntry(item) } : AGAIN
}

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
 * Items of one key share what the first of them does; the others find the entry.
 */
import {
  type Call,
  type Catalog,
  digestHexOf,
  type Entry,
  type Publication,
  type PublishOutcome,
  type StageId
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { AGAIN, Joiner } from '../joiner.js'
import { noPool, type Pool } from '../pool.js'
import { sqlStateOf } from '../waiting.js'
import { areHeavy, type EnteredRow, enterAll, type Way } from './enter.js'
import { entryOf, isSamePlace } from './entries.js'
import { heal } from './heal.js'
import { checkProtocol } from './meta.js'
import { protect } from './pins.js'
import { endStages, lockStages } from './stages.js'

/** Longest one attempt waits for a row: a batch, so that its other items do not; a lone item, so that other lone ones do not. */
const JOIN_LOCK_MS = 100

const PATIENCE = `SELECT set_config('lock_timeout', '${JOIN_LOCK_MS}ms', true)`

type Outcome = PublishOutcome | typeof AGAIN

/** Publications of one key in one transaction: `lead` is what is sent, the others find what it leaves. */
interface Group {
  readonly lead: Publication
  readonly others: readonly Publication[]
}

export function publishOf(pool: Pool, lanes: number): Pick<Catalog, 'publish' | 'pin'> {
  const joiner = new Joiner<Publication, PublishOutcome>(
    {
      run: (items, alone, call) => run(pool, items, alone, call),
      bytesOf: ({ bytes }) => (bytes.kind === 'inline' ? bytes.body.byteLength : 0),
      nameOf: ({ key }) => key,
      isAlone: ({ healing }) => healing !== undefined
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
  const way = { isCopied: areHeavy(items), waits: alone }
  try {
    return await runOnce(pool, items, way, call)
  } catch (error) {
    // Somebody made one of the entries meanwhile.
    if (!way.isCopied || sqlStateOf(error) !== '23505') throw error
    return runOnce(pool, items, { ...way, isCopied: false }, call)
  }
}

async function runOnce(pool: Pool, items: readonly Publication[], way: Way, call: Call): Promise<readonly Outcome[]> {
  const outcomes = await pool.once(call, noPool, async at => {
    // Sent ahead; a failure of what follows it is what matters.
    const patience = at.rows(PATIENCE)
    const [outcomes] = await Promise.all([publishAll(at, items, way), patience])
    return outcomes
  })
  return items.map(item => outcomes.get(item) ?? AGAIN)
}

async function publishAll(
  at: Connection,
  items: readonly Publication[],
  way: Way
): Promise<ReadonlyMap<Publication, Outcome>> {
  const outcomes = new Map<Publication, Outcome>()
  const groups = groupsOf(await withStages(at, items, outcomes))
  if (groups.size === 0) return outcomes
  const leads = [...groups.values()].map(({ lead }) => lead).sort((one, other) => (one.key < other.key ? -1 : 1))
  const protectedItems: Publication[] = []
  const endedStages: StageId[] = []
  const { rows, made } = await enterAll(at, leads, way)
  for (const row of rows) {
    checkProtocol(row[7])
    const { lead, others } = groups.get(row[0]) as Group
    const outcome = await outcomeOf(at, lead, row)
    outcomes.set(lead, outcome)
    for (const other of others) outcomes.set(other, otherOf(outcome))
    if (outcome === AGAIN || !('entry' in outcome)) continue
    protectedItems.push(lead, ...others)
    if (outcome.outcome !== 'existed' && lead.bytes.kind === 'staged') endedStages.push(lead.bytes.stage)
  }
  const sent = [made]
  if (endedStages.length > 0) sent.push(endStages(at, endedStages))
  if (protectedItems.length > 0) sent.push(protect(at, protectedItems))
  await inOrder(sent)
  return outcomes
}

/** Waits for what was sent together. The first that fails is why the others do. */
async function inOrder(sent: readonly Promise<void>[]): Promise<void> {
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

/** By key, in hexadecimal digits. Whoever brings bytes leads: beside it one that asks only for what is there finds it. */
function groupsOf(items: readonly Publication[]): Map<string, Group> {
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

async function outcomeOf(at: Connection, item: Publication, row: EnteredRow): Promise<Outcome> {
  const [, made, locked, there, length, held, locator] = row
  if (made) return { outcome: 'created', entry: madeEntry(item) }
  // Neither made nor locked: it came or went while we looked, or somebody holds it.
  if (!locked) return item.bytes.kind === 'none' && !there ? { outcome: 'absent' } : AGAIN
  const entry = entryOf(item.key, length as bigint, held, locator)
  const { healing } = item
  if (item.bytes.kind === 'none' || healing === undefined || !isSamePlace(entry.place, healing)) {
    return { outcome: 'existed', entry }
  }
  return (await heal(at, entry, item)) ? { outcome: 'healed', entry: madeEntry(item) } : AGAIN
}

function otherOf(lead: Outcome): Outcome {
  return lead !== AGAIN && 'entry' in lead ? { outcome: 'existed', entry: lead.entry } : lead
}

export function madeEntry({ key, length, bytes }: Pick<Publication, 'key' | 'length' | 'bytes'>): Entry {
  return bytes.kind === 'inline'
    ? entryOf(key, length, bytes.body.byteLength, null)
    : entryOf(key, length, 0, bytes.kind === 'staged' ? bytes.locator : null)
}

/**
 * Removes what stages and locators made: `drop`.
 *
 *   1. take the lock of each stage, without waiting: whoever writes under it is not finished, so nothing can be said yet
 *   2. in a new statement, which sees what the last holder of the lock committed: delete the row and unlink its object
 *
 * A large object is a lock and many rows to the server, so batches are bounded by both. If a batch fails its items are tried
 * one by one, and each fails alone. A body too long for one transaction is marked, then cut from its end, step by step.
 */
import { setTimeout } from 'node:timers/promises'
import { type Call, type DropResult, EngineFault, type Locator, type StageId } from '@alkblobs/core/engine'
import { ServerError, type Session } from '@alkblobs/postgres-session'
import { classify } from '../classify.js'
import { checkCall, checkClaimed, confirmIn, type Medium, missingIsAway } from '../medium.js'
import { stageLock, stageOf } from '../names.js'

type What = Locator | StageId

/** Most bodies in one transaction: each takes two of the server's locks, of which it has 6,400 by default for everybody. */
const BATCH = 100
/** Most bytes in one transaction: about two seconds of the server's time. */
const BATCH_BYTES = 1024 ** 3
/** Waits before a stage that was locked is looked at again: who held it may just have been ending. */
const RETRY_MS = [20, 80, 300, 1_000] as const

/** How long before the caller's deadline a drop ends, at most. */
const MARGIN_MS = 1_000

interface Body {
  readonly stage: StageId
  /** What its row claims, in bytes; 0 where there is no row. */
  readonly length: number
}

export async function drop(medium: Medium, what: readonly What[], call: Call): Promise<readonly DropResult[]> {
  // A name that this engine never makes is the name of nothing here, so there is nothing to remove.
  const stages = new Set(what.flatMap(item => stageOf(item) ?? []))
  const failures = await dropStages(medium, [...stages], inTime(call))
  return what.map(item => {
    const stage = stageOf(item)
    return stage !== undefined && failures.has(stage) ? { what: item, error: failures.get(stage) } : { what: item }
  })
}

/** Ends a little before the caller's patience: results that come too late are no results, and what was done is done again. */
function inTime(call: Call): Call {
  const patienceMs = call.deadlineMs - performance.now()
  return { ...call, deadlineMs: call.deadlineMs - Math.min(MARGIN_MS, patienceMs / 10) }
}

/** Removes what the stages made; answers the failures. */
export async function dropStages(
  medium: Medium,
  stages: readonly StageId[],
  call: Call
): Promise<Map<StageId, unknown>> {
  const failures = new Map<StageId, unknown>()
  const fail = (items: readonly Body[], error: unknown) => {
    for (const { stage } of items) if (error !== undefined) failures.set(stage, error)
  }
  let bodies = stages.map((stage): Body => ({ stage, length: 0 }))
  try {
    checkCall(call)
    await checkClaimed(medium, call)
    bodies = await lengthsOf(medium, stages, call)
  } catch (error) {
    fail(bodies, error)
    return failures
  }
  for (const batch of batchesOf(bodies)) {
    try {
      fail(await remove(medium, batch, call), beingWritten())
    } catch (error) {
      // What the medium as a whole cannot do now fails for each of them; what the server refused is told apart one by one.
      if (batch.length === 1 || isOfTheMedium(error)) fail(batch, error)
      else for (const body of batch) fail([body], await failureOf(medium, body, call))
    }
  }
  return failures
}

/** No answer, no time, no claim; an error that the server answered, a bad block say, may be one item's alone. */
function isOfTheMedium(error: unknown): boolean {
  const isAnswer = error instanceof ServerError && error.severity === 'ERROR'
  return classify(error) === 'transient' && !isAnswer
}

async function failureOf(medium: Medium, body: Body, call: Call): Promise<unknown> {
  try {
    const left = await remove(medium, [body], call)
    return left.length === 0 ? undefined : beingWritten()
  } catch (error) {
    return error
  }
}

/** Removes a batch; answers those under whose stages somebody is still writing. */
async function remove(medium: Medium, batch: readonly Body[], call: Call): Promise<readonly Body[]> {
  if (batch.some(({ length }) => length > BATCH_BYTES)) await shorten(medium, batch[0] as Body, call)
  let left = batch
  for (const waitMs of [0, ...RETRY_MS]) {
    // What was seen is an answer; one that comes too late is none.
    if (waitMs > 0 && performance.now() + waitMs >= call.deadlineMs) break
    if (waitMs > 0) await setTimeout(waitMs)
    checkCall(call)
    const removed = await medium.sessions
      .transaction(call, session => removeUnlocked(medium, session, left))
      .catch(missingIsAway)
    left = left.filter(body => !removed.has(body.stage))
    if (left.length === 0) break
  }
  return left
}

function beingWritten(): EngineFault {
  return new EngineFault('conflict', 'a body is being written under the stage')
}

/** Removes what nobody writes; answers those stages. */
async function removeUnlocked(medium: Medium, session: Session, bodies: readonly Body[]): Promise<Set<StageId>> {
  await confirmIn(medium, session)
  const free = await lock(
    medium,
    session,
    bodies.map(({ stage }) => stage)
  )
  await session.rows(
    `WITH gone AS (DELETE FROM ${medium.tables.entries} WHERE stage = ANY ($1::uuid[]) RETURNING loid)
     SELECT count((SELECT lo_unlink(m.oid) FROM pg_largeobject_metadata m WHERE m.oid = g.loid)) FROM gone g`,
    [free]
  )
  return new Set(free)
}

/** Cuts a body down to what fits one transaction, in steps from its end; what was cut stays cut if a later step fails. */
async function shorten(medium: Medium, { stage }: Body, call: Call): Promise<void> {
  for (let isLong = true; isLong; ) {
    checkCall(call)
    isLong = await medium.sessions
      .transaction(call, async session => {
        await confirmIn(medium, session)
        // Sealed long ago, for it is in trash; who holds its lock can only be dropping it as well.
        if ((await lock(medium, session, [stage])).length === 0)
          throw new EngineFault('conflict', 'the body is being dropped')
        const [row] = await session.rows<[boolean]>(
          `WITH long AS (UPDATE ${medium.tables.entries} SET dropping = true WHERE stage = $1::uuid RETURNING loid)
         SELECT held > $2::bigint AND lo_truncate64(d, greatest(held - $2::bigint, 0)) = 0
         FROM long JOIN pg_largeobject_metadata m ON m.oid = long.loid,
           LATERAL lo_open(long.loid, 393216) d, LATERAL lo_lseek64(d, 0, 2) held`,
          [stage, BATCH_BYTES]
        )
        return row?.[0] === true
      })
      .catch(missingIsAway)
  }
}

async function lock({ schema }: Medium, session: Session, stages: readonly StageId[]): Promise<StageId[]> {
  const rows = await session.rows<[boolean]>(
    `SELECT pg_try_advisory_xact_lock(k) FROM unnest($1::bigint[]) WITH ORDINALITY AS l (k, n) ORDER BY n`,
    [stages.map(stage => stageLock(schema, stage))]
  )
  return stages.filter((_, n) => rows[n]?.[0] === true)
}

async function lengthsOf(medium: Medium, stages: readonly StageId[], call: Call): Promise<Body[]> {
  const rows = await medium.sessions
    .ask(call, session =>
      session.rows<[StageId, string]>(
        `SELECT encode(uuid_send(stage), 'hex'), length::text FROM ${medium.tables.entries}
         WHERE stage = ANY ($1::uuid[])`,
        [stages]
      )
    )
    .catch(missingIsAway)
  const lengths = new Map(rows.map(([stage, length]) => [stage, Number(length)]))
  // One without a row is looked for all the same: it may be sealed at this moment.
  return stages.map(stage => ({ stage, length: lengths.get(stage) ?? 0 }))
}

function batchesOf(bodies: readonly Body[]): Body[][] {
  const batches: Body[][] = []
  let bytes = 0
  for (const body of bodies) {
    const last = batches.at(-1)
    bytes += body.length
    if (last !== undefined && last.length < BATCH && bytes <= BATCH_BYTES) last.push(body)
    else {
      batches.push([body])
      bytes = body.length
    }
  }
  return batches
}

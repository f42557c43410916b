/** Stages: durable, expiring intents to write a body. What ends without a publication goes to trash. */
import { type Catalog, PROTOCOL_VERSION, type StageId } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { noPool, type Pool } from '../pool.js'
import { checkStamp } from './meta.js'

const STAGE = `
  INSERT INTO $.stages (id, expires_at)
  SELECT id, clock_timestamp() + ttl * interval '1 millisecond'
  FROM unnest($1::text[], $2::float8[]) AS i (id, ttl) WHERE (SELECT protocol FROM $.meta) <= $3::integer ORDER BY id
  ON CONFLICT (id) DO UPDATE SET expires_at = greatest(stages.expires_at, excluded.expires_at)`
const STAGED = 'SELECT id FROM $.stages WHERE id = ANY ($1::text[]) AND expires_at > clock_timestamp()'
const LOCK = `${STAGED} ORDER BY id FOR UPDATE`
const END = 'DELETE FROM $.stages WHERE id = ANY ($1::text[])'
const TRASH = `
  WITH held AS MATERIALIZED (
    SELECT id FROM $.stages WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE
  ), ended AS (
    DELETE FROM $.stages s USING held h WHERE s.id = h.id RETURNING s.id
  ), trashed AS (
    INSERT INTO $.trash (what, not_before) SELECT id, clock_timestamp() FROM ended ORDER BY id
    ON CONFLICT (what) DO NOTHING
  )
  SELECT id FROM ended`

/** Which of these stages are there and unexpired; their rows are locked until the transaction ends. */
export async function lockStages(at: Connection, stages: readonly StageId[]): Promise<ReadonlySet<StageId>> {
  return new Set((await at.rows<[StageId]>(LOCK, stages)).map(([id]) => id))
}

/** Ends the rows of stages that were published. */
export async function endStages(at: Connection, stages: readonly StageId[]): Promise<void> {
  await at.run(END, stages)
}

export function stagesOf(pool: Pool): Pick<Catalog, 'stage' | 'staged' | 'unstage'> {
  return {
    stage: (stages, call) =>
      pool.ask(call, noPool, async at => {
        const [ids, ttls] = [stages.map(({ id }) => id), stages.map(({ ttlMs }) => ttlMs)]
        // The statement does nothing under a protocol that it does not know; then the look says which.
        if ((await at.run(STAGE, ids, ttls, PROTOCOL_VERSION)) < stages.length) await checkStamp(at)
      }),
    staged: (stages, call) => eachOf(pool, stages, call, STAGED),
    unstage: async (stages, call) => {
      // One that is locked by the application stays, and expires by itself.
      const ended = await eachOf(
        pool,
        stages.filter(stage => !pool.lockedStages.has(stage)),
        call,
        TRASH
      )
      return stages.map(stage => !pool.lockedStages.delete(stage) && ended.shift() === true)
    }
  }
}

/** Which of the stages a statement answers. */
function eachOf(
  pool: Pool,
  stages: readonly StageId[],
  call: Parameters<Catalog['staged']>[1],
  statement: string
): Promise<boolean[]> {
  return pool.ask(
    call,
    () => stages.map(() => false),
    async at => {
      const answered = new Set((await at.rows<[StageId]>(statement, stages)).map(([id]) => id))
      return stages.map(stage => answered.has(stage))
    }
  )
}

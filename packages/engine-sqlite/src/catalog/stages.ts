/** Stages: durable, expiring intents to write a body. What ends without a publication goes to trash. */
import type { Catalog, StageId } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { noPool } from '../group-commit.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import { checkStamp } from './meta.js'
import { discard } from './trash.js'

const STAGE = 'INSERT INTO stages (id, expires_at) VALUES (?, ?)'
const EXPIRY = 'SELECT expires_at FROM stages WHERE id = ?'
const END = 'DELETE FROM stages WHERE id = ?'

export function isStaged({ at, now }: Pick<Transaction, 'at' | 'now'>, stage: StageId): boolean {
  const row = at.row<[number]>(EXPIRY, stage)
  return row !== undefined && row[0] > now
}

/** Ends the row of a stage that was published. */
export function endStage(at: Connection, stage: StageId): void {
  at.run(END, stage)
}

/** Moves a stage to trash; says whether its row was there. */
export function trashStage(transaction: Transaction, stage: StageId): boolean {
  const wasThere = transaction.at.run(END, stage) > 0
  if (wasThere) discard(transaction, { what: stage })
  return wasThere
}

export function stagesOf(pool: Pool): Pick<Catalog, 'stage' | 'staged' | 'unstage'> {
  return {
    async stage(stages, call) {
      await pool.writeEach(call, stages, some => ({
        absent: noPool,
        run: transaction => {
          checkStamp(transaction)
          for (const { id, ttlMs } of some) transaction.at.run(STAGE, id, transaction.now + ttlMs)
          return []
        }
      }))
    },
    staged: (stages, call) =>
      pool.read(
        call,
        stages.map(() => false),
        at => {
          const now = Date.now()
          return stages.map(stage => isStaged({ at, now }, stage))
        }
      ),
    unstage: (stages, call) =>
      pool.writeEach(call, stages, some => ({
        absent: () => some.map(() => false),
        run: transaction => some.map(stage => trashStage(transaction, stage))
      }))
  }
}

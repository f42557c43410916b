/** Whose bodies these are: `claimed` and `claim`. The claim is one row, written in the transaction that makes the tables. */
import { type Call, type Claim, EngineFault, type PoolId } from '@alkblobs/core/engine'
import type { Session } from '@alkblobs/postgres-session'
import { confirm, type Medium, missingIsAway } from '../medium.js'
import { FORMAT, isMade, make } from '../schema.js'
import { Holder } from './holder.js'

/** The claim in force; `undefined` for a schema that is not there or holds nothing. Creates nothing. */
export async function claimed(medium: Medium, call: Call): Promise<Claim | undefined> {
  const claim = await medium.sessions.ask(call, session => findClaim(medium, session))
  if (claim !== undefined) medium.poolId ??= claim.poolId
  return claim
}

async function findClaim({ schema, tables }: Medium, session: Session): Promise<Claim | undefined> {
  if (!(await isMade(session, schema))) return undefined
  const [row] = await session.rows<[number, PoolId, Claim['mode']]>(`SELECT format, pool_id, mode FROM ${tables.claim}`)
  if (row !== undefined) {
    const [format, poolId, mode] = row
    if (Number(format) <= FORMAT) return { poolId, mode }
    throw new EngineFault('newer', `the schema has format ${format}, this package knows ${FORMAT}`)
  }
  const bodies = await session.rows(`SELECT FROM ${tables.entries} LIMIT 1`)
  if (bodies.length === 0) return undefined
  throw new EngineFault('foreign', 'the schema holds bodies and no claim; put the row of lo_claim back from a backup')
}

/** Binds the schema to the pool, unless somebody was first, and answers the claim in force. */
export async function claim(medium: Medium, wanted: Claim, call: Call): Promise<Claim | 'held'> {
  const inForce = (await claimed(medium, call)) ?? (await writeClaim(medium, wanted, call))
  if (inForce.poolId !== wanted.poolId || inForce.mode !== wanted.mode) return inForce
  if (wanted.mode === 'exclusive' && medium.holder === undefined) {
    const { holderSessions, schema, tables } = medium
    const holder = await Holder.take(holderSessions, schema, tables, call)
    if (holder === undefined) return 'held'
    medium.holder = holder
  }
  confirm(medium, inForce.poolId)
  medium.claim = inForce
  return inForce
}

/** BODY-CLAIM-4, in one statement. A holder of the old claim finds another pool's at its next step. */
export async function reclaim(medium: Medium, expected: PoolId, next: Claim, call: Call): Promise<boolean> {
  const statement = `UPDATE ${medium.tables.claim} SET pool_id = $2, mode = $3, fence = fence + 1 WHERE pool_id = $1`
  const taken = await medium.sessions
    .use(call, session => session.run(statement, [expected, next.poolId, next.mode]))
    .catch(missingIsAway)
  if (taken === 1) medium.poolId = next.poolId
  return taken === 1
}

async function writeClaim(medium: Medium, { poolId, mode }: Claim, call: Call): Promise<Claim> {
  const { schema, sessions, tables } = medium
  return sessions
    .transaction(call, async session => {
      await make(session, schema)
      await session.run(
        `INSERT INTO ${tables.claim} (format, pool_id, mode) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
        [FORMAT, poolId, mode]
      )
      // In a statement of its own, which sees what somebody else committed a moment ago.
      const found = await findClaim(medium, session)
      if (found === undefined) throw new EngineFault('transient', 'the claim was removed while it was being written')
      return found
    })
    .catch(missingIsAway)
}

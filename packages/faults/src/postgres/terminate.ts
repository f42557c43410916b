/** Ends sessions of the tested engine the way an administrator does: the server tells them (57P01) and closes. */
import { lookUntil } from '../looking.js'
import type { PgAdmin } from './admin.js'

const GONE_LIMIT_MS = 5_000

/** A session that was to be ended and was not, or was not to be ended. */
export class NotTerminated extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NotTerminated'
  }
}

/**
 * Ends one session and answers when its process is gone.
 * @throws NotTerminated for the administrator's own, and for a process that was not there or did not go.
 */
export async function terminateBackend(admin: PgAdmin, pid: number): Promise<void> {
  if (admin.pids.includes(pid)) throw new NotTerminated(`process ${pid} serves the administrator of the test`)
  const [row] = await admin.query<{ told: boolean }>(`SELECT pg_terminate_backend(${Number(pid)}) AS told`)
  if (row?.told !== true) throw new NotTerminated(`there was no process ${pid} to end`)
  const gone = await lookUntil(async () => {
    const rows = await admin.query(`SELECT FROM pg_stat_activity WHERE pid = ${Number(pid)}`)
    return rows.length === 0 ? true : undefined
  }, GONE_LIMIT_MS)
  if (gone === undefined) throw new NotTerminated(`process ${pid} was told to end and is still there`)
}

/** The sessions in the admin's database that are neither the administrator's nor the tests' own. */
export async function sessionsOf(admin: PgAdmin): Promise<readonly number[]> {
  const rows = await admin.query<{ pid: number }>(
    `SELECT pid::int FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
       AND application_name <> 'alkblobs-testkit' AND pid <> ALL ('{${admin.pids.join(',')}}'::int[]) ORDER BY pid`
  )
  return rows.map(({ pid }) => Number(pid))
}

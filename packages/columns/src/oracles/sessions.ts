/** Counts what an engine keeps its sessions busy with. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestDatabase } from '@alkblobs/testkit'

/** A statement that does its work and ends is over by then. */
const AGAIN_AFTER_MS = 50

const BUSY = `SELECT pid, xact_start::text AS since FROM pg_stat_activity
  WHERE datname = $1 AND (application_name = $2 OR starts_with(application_name, $2 || ' ')) AND xact_start IS NOT NULL`
const END = `SELECT pg_terminate_backend(pid, 5000) AS done FROM pg_stat_activity
  WHERE datname = $1 AND application_name = $2`

/** How the sessions of the nth store over the same media are called. */
export function sessionName(name: string, nth: number): string {
  return nth === 1 ? name : `${name} ${nth}`
}

/** Ends the sessions of that name and waits until they are gone. */
export async function endSessions({ query, database }: Pick<TestDatabase, 'query' | 'database'>, name: string) {
  await query(END, [database, name])
}

/**
 * Sessions of that name, of whichever store, in one and the same transaction for two looks: what a store does by the way (it releases pins behind the
 * caller's back) is no handle, and neither is a session that waits in a pool.
 */
export async function busySessions({ query, database }: Pick<TestDatabase, 'query' | 'database'>, name: string) {
  const look = async () => (await query(BUSY, [database, name])).map(({ pid, since }) => `${pid} ${since}`)
  const first = await look()
  if (first.length === 0) return 0
  await sleep(AGAIN_AFTER_MS)
  return (await look()).filter(each => first.includes(each)).length
}

/** The PostgreSQL server of a run: one for all rows, from the binaries that npm brings or from Docker, and synced as a server of users is. */
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { startServer } from '@alkblobs/testkit'

/** A server that really syncs, and makes checkpoints by time, so that none falls into one round and not into another. */
const SETTINGS = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min'
}

/** Starts it. `folder` is where the other contestants of the run write. */
export async function startPg(folder) {
  const server = await startServer({ settings: SETTINGS })
  const { host, port, user, password, database, version, kind } = server
  const isBeside = kind === 'embedded' && statSync(tmpdir()).dev === statSync(folder).dev
  const disk = isBeside ? 'on the disk of the run' : 'ON ANOTHER DISK than the run'
  return {
    at: { host, port, user, password, database },
    line: `PostgreSQL ${version} (${kind}), fsync on, ${disk}, on this machine's loopback`,
    stop: () => server.release()
  }
}

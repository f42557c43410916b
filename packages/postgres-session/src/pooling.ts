/**
 * Refuses proxies that give a session's statements to changing servers (transaction pooling): settings, advisory locks and
 * prepared statements would be somebody else's a moment later.
 *
 * A proxy shows itself by answering for the server when the session starts: the process that it names is not the one that
 * serves. A proxy that keeps one server for each session is welcome, so it is put to the test: while another session holds a
 * transaction, whose server a sharing proxy has just taken from the first one, the first must find its own server again.
 */
import { EngineFault } from '@alkblobs/core/engine'
import type { Connection } from './connection.js'

const PROCESS = 'SELECT pg_catalog.pg_backend_pid()'
const ROUNDS = 3

/** @throws EngineFault `pooled` if the session is served by another process than before. */
export async function checkProcess(connection: Connection): Promise<void> {
  const [row] = await connection.rows<[number]>(PROCESS)
  if (row?.[0] === connection.pid) return
  const fault = new EngineFault('pooled', 'a proxy changes the server under a session; it must pool by session')
  connection.kill(fault)
  throw fault
}

/** Puts the proxy between here and the server to the test. @throws EngineFault `pooled` if it fails. */
export async function checkProxy(one: Connection, other: Connection): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const [first, second] = round % 2 === 0 ? [one, other] : [other, one]
    await checkProcess(first)
    await second.run('BEGIN')
    await checkProcess(second)
    await checkProcess(first)
    await second.run('ROLLBACK')
  }
}

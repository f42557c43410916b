/** A connection of the tests' own to a server, for looking at it past everything that is tested. */
import postgres from 'postgres'
import type { Address } from './keeper.js'

export type Value = string | number | bigint | boolean | Date | Uint8Array | null
export type Row = Record<string, unknown>

export interface Client {
  /** Rows by name. Without parameters the text may hold several statements. `bytea` is a Buffer, `bigint` a string. */
  query<R extends Row = Row>(text: string, values?: readonly Value[]): Promise<R[]>
  close(): Promise<void>
}

/** Opens nothing before the first query; at most two connections, which end by themselves when they are idle. */
export function clientOf(address: Omit<Address, 'kind'>): Client {
  const { host, port, user, password, database } = address
  const connection = { application_name: 'alkblobs-testkit' }
  const sql = postgres({
    host,
    port,
    user,
    password,
    database,
    max: 2,
    connect_timeout: 10,
    idle_timeout: 2,
    onnotice: () => undefined,
    connection
  })
  return {
    async query<R extends Row>(text: string, values: readonly Value[] = []) {
      const answer = values.length === 0 ? sql.unsafe(text).simple() : sql.unsafe(text, values as never[])
      return [...(await answer)] as unknown as R[]
    },
    close: () => sql.end({ timeout: 1 })
  }
}

/** For names that the kit makes and names that it read from the server. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

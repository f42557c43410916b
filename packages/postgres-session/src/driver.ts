/** The driver, told to leave alone whatever we do ourselves. */
import postgres from 'postgres'
import type { CheckedConfig } from './config.js'
import { type Column, UNTOUCHED } from './values.js'

/** The driver's answer to a statement; of several statements, one each. */
export interface Answer extends ReadonlyArray<(Buffer | null)[]> {
  readonly count: number | null
  readonly command: string | null
  readonly columns: readonly Column[] | null
  readonly state: { readonly pid: number | null } | null
}
/** A statement of the driver's. `resolve` and `reject` are how it tells the outcome, to whoever has put himself there. */
export interface DriverQuery extends Promise<Answer> {
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
  raw(): DriverQuery
  execute(): DriverQuery
}

/** One connection, over what `socket` gives once; nothing is opened before the first statement. */
export function openDriver(config: CheckedConfig, socket: () => Promise<unknown>): postgres.Sql {
  const { user, password, database, host, port, applicationName } = config
  const options = {
    host,
    port,
    user,
    password,
    database,
    ssl: false,
    max: 1,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: 0,
    keep_alive: null,
    backoff: () => 0,
    fetch_types: false,
    prepare: true,
    debug: false,
    types: UNTOUCHED,
    connection: { application_name: applicationName },
    sslnegotiation: null,
    onnotice: () => undefined,
    socket
  }
  // The driver's types do not know of `socket`, which its documentation names.
  return postgres(options as unknown as postgres.Options<{ text: postgres.PostgresType<string> }>) as postgres.Sql
}

/**
 * The administrator of a test: two sessions beside everything that is tested, one that holds locks and one that looks. Their processes are
 * known, so nothing here ever ends them.
 */
import postgres from 'postgres'

export type Row = Record<string, unknown>
export type Query = <R extends Row = Row>(text: string, values?: readonly (string | number | null)[]) => Promise<R[]>

export interface PgAdmin {
  readonly database: string
  /** The server processes of the administrator's own sessions. */
  readonly pids: readonly number[]
  /** Looks and orders; each statement for itself. */
  readonly query: Query
  /** The session that holds: what it begins goes on until it ends it. */
  readonly hold: Query
  close(): Promise<void>
}

/** What databases and schemas that tests made are called. Nothing here touches another one. */
const MINTED = /(^|_)test_|^alkblobs_test/

/** A database that was not made by tests. */
export class NotMinted extends Error {
  constructor(database: string) {
    super(`${database} was not made by tests (its name, or the schema's, contains no "test_"): no fault is armed there`)
    this.name = 'NotMinted'
  }
}

/** @throws NotMinted unless the database, or the schema in it, is of the tests. */
export function assertMinted(database: string, schema?: string): void {
  if (!MINTED.test(database) && !MINTED.test(schema ?? '')) throw new NotMinted(database)
}

/**
 * @throws NotMinted for a database that is not of the tests; `schema` says that the faults keep to one of that name, which then is
 * what must be of the tests. Whatever the driver throws.
 */
export async function pgAdmin(url: string, { schema }: { readonly schema?: string } = {}): Promise<PgAdmin> {
  const database = decodeURIComponent(new URL(url).pathname.slice(1))
  assertMinted(database, schema)
  const clients = [session(url), session(url)] as const
  const [looking, holding] = clients.map(queryOf) as [Query, Query]
  const pids: number[] = []
  for (const query of [looking, holding]) {
    const [row] = await query<{ pid: number }>('SELECT pg_backend_pid()::int AS pid')
    pids.push(Number(row?.pid))
  }
  return {
    database,
    pids,
    query: looking,
    hold: holding,
    close: async () => {
      for (const client of clients) await client.end({ timeout: 1 })
    }
  }
}

function session(url: string): postgres.Sql {
  const connection = { application_name: 'alkblobs-testkit' }
  return postgres(url, { max: 1, idle_timeout: 0, max_lifetime: null, fetch_types: false, onnotice, connection })
}

function onnotice(): void {}

function queryOf(client: postgres.Sql): Query {
  return async <R extends Row>(text: string, values: readonly (string | number | null)[] = []) => {
    const answer = values.length === 0 ? client.unsafe(text).simple() : client.unsafe(text, [...values])
    return [...(await answer)] as unknown as R[]
  }
}

/** For names of the tests' own making. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as SQL writes it. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

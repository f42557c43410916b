/** Databases, schemas and roles that a test has to itself and that go with it. */
import { randomBytes } from 'node:crypto'
import { type TestServer, urlOf } from './server.js'
import { sharedServer } from './shared.js'
import { type Client, clientOf, quoted } from './sql.js'

/** What the kit makes is called so, which is how `residue` finds what was left. */
export const NAME_PREFIX = 'alkblobs_test_'

export interface TestDatabase extends Pick<Client, 'query'> {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  readonly url: string
  /** Ends every session in the database and removes it. Idempotent. */
  drop(): Promise<void>
}

export interface TestSchema extends Omit<TestDatabase, 'drop'> {
  /** Its name, which needs no quotes. It does not exist yet: making it is what is tested. */
  readonly schema: string
  /** Removes the schema with everything in it, if it was made. Large objects belong to no schema and stay. Idempotent. */
  drop(): Promise<void>
}

export interface TestRole {
  readonly name: string
  readonly password: string
  /** Removes what it owns in its database, its grants, and the role. */
  drop(): Promise<void>
}

const freshName = (what: string) => `${NAME_PREFIX}${what}_${randomBytes(6).toString('hex')}`

/** An empty database on the server of the run, or on the one given. */
export async function freshDatabase(server?: TestServer): Promise<TestDatabase> {
  const { host, port, user, password, database } = server ?? (await sharedServer())
  return await makeDatabase({ host, port, user, password, database }, 'template0')
}

/** A copy of a database on its own server, large objects included. Ends every session in the one that is copied. */
export async function copyDatabase({ host, port, user, password, database }: TestDatabase): Promise<TestDatabase> {
  const outside = { host, port, user, password, database: 'template1' }
  await once(
    outside,
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid()`
  )
  return await makeDatabase(outside, database)
}

async function makeDatabase(outside: Parameters<typeof clientOf>[0], template: string): Promise<TestDatabase> {
  const database = freshName('db')
  await once(outside, `CREATE DATABASE ${database} TEMPLATE ${template}`)
  const inside = { ...outside, database }
  const client = clientOf(inside)
  return {
    ...inside,
    url: urlOf(inside),
    query: client.query,
    async drop() {
      await client.close()
      await once(outside, `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)
    }
  }
}

/** A name for a schema that nobody has, in the database of the run, or in the one given. */
export async function freshSchema(database?: TestDatabase): Promise<TestSchema> {
  const place = database ?? (await sharedServer())
  const { host, port, user, password } = place
  const inside = { host, port, user, password, database: place.database }
  const schema = freshName('schema')
  const client = clientOf(inside)
  return {
    ...inside,
    url: urlOf(inside),
    schema,
    query: client.query,
    async drop() {
      await client.close()
      await once(inside, `DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    }
  }
}

/** A role that may log in and, until it is granted something in the database given, do nothing else. */
export async function freshRole(database: TestDatabase): Promise<TestRole> {
  const name = freshName('role')
  const password = randomBytes(12).toString('hex')
  await database.query(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'`)
  return {
    name,
    password,
    async drop() {
      await once(database, `DROP OWNED BY ${quoted(name)} CASCADE; DROP ROLE ${quoted(name)}`)
    }
  }
}

async function once(address: Parameters<typeof clientOf>[0], text: string): Promise<void> {
  const client = clientOf(address)
  try {
    // DROP and CREATE DATABASE must stand alone; the others may not be torn apart.
    for (const statement of text.split('; ')) await client.query(statement)
  } finally {
    await client.close()
  }
}

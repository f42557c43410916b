import { describe, expect, it } from 'vitest'
import {
  clientOf,
  freshDatabase,
  freshRole,
  freshSchema,
  noServer,
  residue,
  sharedServer,
  startServer
} from '../src/index.js'

describe.skipIf(noServer() !== undefined)(
  `the server of the run${noServer() === undefined ? '' : ` (${noServer()})`}`,
  () => {
    it('is the same for everybody in the run', async () => {
      const [one, other] = await Promise.all([sharedServer(), sharedServer()])
      expect(one.url).toBe(other.url)
      await expect(one.stop()).rejects.toThrow(/start one of your own/)
    })

    it('gives databases and schemas that leave nothing', async () => {
      const database = await freshDatabase()
      const schema = await freshSchema()
      const inside = await freshSchema(database)
      await database.query('SELECT lo_create(0); CREATE TABLE t (a int)')
      await schema.query(`CREATE SCHEMA ${schema.schema}; CREATE TABLE ${schema.schema}.t (a int)`)
      await inside.query(`CREATE SCHEMA ${inside.schema}`)
      const role = await freshRole(database)
      await database.query(`GRANT ALL ON TABLE t TO ${role.name}`)
      const left = async () => {
        const found = await clientOf(await sharedServer())
        const names = [database.database, schema.schema, role.name]
        const [row] = await found.query<{ count: number }>(
          `SELECT ((SELECT count(*) FROM pg_database WHERE datname = ANY ($1)) +
           (SELECT count(*) FROM pg_namespace WHERE nspname = ANY ($1)) +
           (SELECT count(*) FROM pg_roles WHERE rolname = ANY ($1)))::int AS count`,
          [names as never]
        )
        await found.close()
        return row?.count
      }
      expect(await left()).toBe(3)
      await role.drop()
      await inside.drop()
      await schema.drop()
      await database.drop()
      await database.drop()
      expect(await left()).toBe(0)
    })

    it('has a second one at its side that can be stopped, killed and started again on the same port', async () => {
      const server = await startServer()
      try {
        const { port } = await sharedServer()
        expect(server.port).not.toBe(port)
        const count = async () => {
          const client = clientOf(server)
          try {
            return (await client.query('SELECT count(*)::int AS n FROM kept'))[0]?.n
          } finally {
            await client.close()
          }
        }
        const client = clientOf(server)
        await client.query('CREATE TABLE kept AS SELECT 1 AS a')
        await client.close()
        await server.restart()
        expect(await count()).toBe(1)
        await server.kill()
        await expect(count()).rejects.toThrow()
        await server.start()
        expect(await count()).toBe(1)
        expect(await residue(server)).toMatchObject({ databases: 0, schemas: 0, relations: 1, sessions: 0 })
      } finally {
        await server.release()
      }
    })
  }
)

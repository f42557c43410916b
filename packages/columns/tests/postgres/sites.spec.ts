/** Every schema, database and session that a factory makes on the server is gone after its teardown. */
import { createMedium, mem } from '@alkblobs/engine-mem'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { clientOf, noServer, sharedServer } from '@alkblobs/testkit'
import { describe, expect, test } from 'vitest'
import { type ColumnFactory, factoryOf, type Place } from '../../src/index.js'

/** A column that tells the names of what it made. */
function watched(place?: Place): { readonly factory: ColumnFactory; readonly names: string[] } {
  const names: string[] = []
  const factory = factoryOf(
    {
      name: 'watched',
      traits: ['dual-tier', 'durable'],
      threshold: 10,
      needsServer: true,
      async media(site) {
        const [{ url, schema }, database] = [await site.schema(), await site.database()]
        names.push(schema, database.database)
        return {
          kv: postgres({ url, schema, applicationName: schema }),
          large: pglo({ url: database.url, applicationName: database.database }),
          oracle: []
        }
      }
    },
    place
  )
  return { factory, names }
}

/** Which of these names a server has, as schemas, as databases, or as what sessions call themselves. */
async function found(names: readonly string[]): Promise<string[]> {
  const client = clientOf(await sharedServer())
  try {
    const rows = await client.query<{ name: string }>(
      `SELECT nspname::text AS name FROM pg_namespace WHERE nspname = ANY ($1) UNION
       SELECT datname FROM pg_database WHERE datname = ANY ($1) UNION
       SELECT application_name FROM pg_stat_activity WHERE application_name = ANY ($1)`,
      [names as never]
    )
    return rows.map(({ name }) => name).sort()
  } finally {
    await client.close()
  }
}

describe.skipIf(noServer() !== undefined)('on a server, a teardown', () => {
  test('removes exactly what its factory made, over open, closed and abandoned stores', async () => {
    const [mine, theirs] = [watched(), watched()]
    const other = await theirs.factory.open()
    await other.put('longer than the threshold')
    const [open, closed, abandoned] = [await mine.factory.open(), await mine.factory.open(), await mine.factory.open()]
    for (const store of [open, closed]) await store.put('longer than the threshold')
    await closed.close()
    const writer = abandoned.writer()
    await writer.write(new Uint8Array(3_000_000))
    expect((await found(mine.names)).length).toBeGreaterThan(3)
    await mine.factory.teardown()
    await expect.poll(() => found(mine.names)).toEqual([])
    expect((await found(theirs.names)).length).toBeGreaterThanOrEqual(2)
    expect((await other.get((await other.put('longer than the threshold')).key))?.size).toBe(25)
    await theirs.factory.teardown()
    await expect.poll(() => found(theirs.names)).toEqual([])
  })

  test('works where nothing was asked of the server, and where it refused', async () => {
    const idle = factoryOf({
      name: 'idle',
      traits: ['mem-only', 'inline'],
      media: () => ({ kv: mem({ medium: createMedium() }), oracle: [] })
    })
    await idle.open()
    await idle.teardown()
    const refused = factoryOf({
      name: 'refused',
      traits: ['kv-only', 'durable'],
      threshold: 10,
      async media(site) {
        const { url, schema } = await site.schema()
        return { kv: postgres({ url, user: 'nobody_of_this_name', password: '', schema }), oracle: [] }
      }
    })
    // A server that trusts whoever comes answers something else than one that asks for a password; both refuse.
    await expect(refused.open()).rejects.toThrow()
    await refused.teardown()
    await refused.teardown()
  })
})

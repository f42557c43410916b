/**
 * Where a column keeps what it makes for one pool: a folder below the system's temporary folder, and schemas and a database on
 * the server of the tests for those that ask. All of it is gone after the row.
 */
import { accessSync, constants } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  copyDatabase,
  freshDatabase,
  freshSchema,
  startServer,
  type TestDatabase,
  type TestSchema
} from '@alkblobs/testkit'

export interface Site {
  readonly folder: string
  /** A database of this site alone, the same one each time it is asked for: large objects belong to no schema. */
  database(): Promise<TestDatabase>
  /** The same as a copy of somebody's; asked for before anything else of the kind. */
  copyOf(database: TestDatabase): Promise<TestDatabase>
  /** A database on another server, which ends with this site. */
  elsewhere(): Promise<TestDatabase>
  /** A schema that nobody else has and that does not exist yet, in the database of the run, or in this site's own. */
  schema(inside?: TestDatabase): Promise<TestSchema>
  /** Removes exactly what this site made. */
  remove(): Promise<void>
}

/** A fresh site; nothing is asked of a server before something of a server is asked for. */
export async function makeSite(below?: string): Promise<Site> {
  const folder = await makeFolder(below)
  const schemas: Promise<TestSchema>[] = []
  let database: Promise<TestDatabase> | undefined
  const servers: ReturnType<typeof startServer>[] = []
  return {
    folder,
    database() {
      database ??= freshDatabase()
      return database
    },
    copyOf(original) {
      database ??= copyDatabase(original)
      return database
    },
    async elsewhere() {
      const server = startServer()
      servers.push(server)
      return await freshDatabase(await server)
    },
    schema(inside) {
      const schema = freshSchema(inside)
      schemas.push(schema)
      return schema
    },
    async remove() {
      const [made, own] = [schemas.splice(0), database]
      database = undefined
      // What could not be made is not there to be removed; whoever asked for it has been told.
      for (const result of await Promise.allSettled(made)) if (result.status === 'fulfilled') await result.value.drop()
      await own?.then(
        each => each.drop(),
        () => undefined
      )
      for (const result of await Promise.allSettled(servers.splice(0)))
        if (result.status === 'fulfilled') await result.value.release()
      await removeFolder(folder)
    }
  }
}

/** A fresh folder that nobody else has, below the temporary folder unless told otherwise. */
async function makeFolder(below = tmpdir()): Promise<string> {
  return await mkdtemp(join(below, 'alkblobs-column-'))
}

/** A folder whose files lie in memory, where a file is synced at once; the temporary folder where the system has none. */
export function memoryFolder(): string {
  const folder = '/dev/shm'
  try {
    accessSync(folder, constants.W_OK)
    return folder
  } catch {
    return tmpdir()
  }
}

/** Removes a folder and all that is in it; gone already is done. */
async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

/** Copies what a pool that no store has open keeps in its folder, and answers where the copy is. */
export async function copyFolder(from: Site, to: Site): Promise<Site> {
  await cp(from.folder, to.folder, { recursive: true })
  return to
}

/** Media on a server: a catalog in a schema, large objects in a database, each store over them with sessions of its own name. */
import { join } from 'node:path'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { local } from '@alkblobs/engine-local'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import type { TestDatabase, TestSchema } from '@alkblobs/testkit'
import type { Media } from './factory.js'
import { folderPart } from './oracles/folder.js'
import { largeObjectsPart } from './oracles/large-objects.js'
import type { OraclePart } from './oracles/part.js'
import { schemaPart } from './oracles/schema.js'
import { endSessions, sessionName } from './oracles/sessions.js'
import type { Site } from './site.js'

/** One tier of a column. */
export interface Tier {
  /** The engine of the nth store over the medium; the first is 1. */
  engine(nth: number): EngineDefinition
  readonly oracle: OraclePart
  endSessions?(nth: number): Promise<void>
}

/** The catalog in a schema. */
export function catalogAt(place: TestSchema, another: () => Promise<TestSchema>): Tier {
  const { url, schema } = place
  return {
    engine: nth => postgres({ url, schema, applicationName: sessionName(schema, nth) }),
    oracle: schemaPart(place, another),
    endSessions: nth => endSessions(place, sessionName(schema, nth))
  }
}

/** The catalog in a schema of its own, in the database of the run or in the one given. */
export async function catalogOn(site: Site, database?: TestDatabase): Promise<Tier> {
  return catalogAt(await site.schema(database), () => site.schema(database))
}

/** Large objects, in a database of their own because they have no schema. */
export function largeObjectsIn(database: TestDatabase): Tier {
  const { url, database: name } = database
  return {
    engine: nth => pglo({ url, applicationName: sessionName(`${name} large`, nth) }),
    oracle: largeObjectsPart(database),
    endSessions: nth => endSessions(database, sessionName(`${name} large`, nth))
  }
}

/** Bodies in a folder of the site. */
export function folderOf({ folder }: Site): Tier {
  const root = join(folder, 'large')
  return { engine: () => local({ root }), oracle: folderPart(root) }
}

/** The media of a pool whose catalog is on a server. */
export function serverMedia(kv: Tier, large?: Tier): Media {
  const tiers = large === undefined ? [kv] : [kv, large]
  const instance = (nth: number) => ({ kv: kv.engine(nth), ...(large && { large: large.engine(nth) }) })
  return {
    ...instance(1),
    instance,
    oracle: tiers.map(({ oracle }) => oracle),
    async endSessions(nth) {
      for (const tier of tiers) await tier.endSessions?.(nth)
    }
  }
}

/** Catalog and large objects in one database, which is copied as a whole. */
export async function oneDatabase(site: Site, largeSite = site): Promise<Media> {
  const database = await site.database()
  const place = await site.schema(database)
  const media = serverMedia(
    catalogAt(place, () => site.schema(database)),
    largeObjectsIn(await largeSite.database())
  )
  return {
    ...media,
    async copy(other) {
      const copied = await other.copyOf(database)
      const { schema, drop } = place
      const catalog = catalogAt({ ...copied, schema, drop }, () => other.schema(copied))
      return serverMedia(catalog, largeObjectsIn(copied))
    }
  }
}

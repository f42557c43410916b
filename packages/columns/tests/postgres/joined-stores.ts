/** A store on PostgreSQL of each kind, an application beside it with a table that refers to blobs, and an eye on both. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store, type StoreOptions } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { freshDatabase, type TestDatabase } from '@alkblobs/testkit'
import driver from 'postgres'
import { onTestFinished } from 'vitest'

export const KINDS = ['postgres + local', 'kv-only', 'postgres + pglo'] as const
export type Kind = (typeof KINDS)[number]

export const THRESHOLD = 3_000
export const SHORT = Buffer.alloc(1_000, 1)
export const LONG = Buffer.alloc(10_000, 2)

export interface Place {
  readonly kind: Kind
  readonly url: string
  readonly root: string
}

export type Options = Partial<Omit<StoreOptions, 'kv' | 'large'>>

/** Opens a store of that kind; whoever opens it closes it. */
export function openAt({ kind, url, root }: Place, options: Options = {}): Promise<Store> {
  const large = {
    'postgres + local': () => local({ root }),
    'kv-only': () => undefined,
    'postgres + pglo': () => pglo({ url })
  }[kind]()
  const threshold = large === undefined ? { threshold: 100_000 } : { threshold: THRESHOLD, large }
  return openStore({ kv: postgres({ url }), windowDelayMs: 0, trashDelayMs: 0, ...threshold, ...options })
}

export class Bench {
  readonly place: Place
  readonly database: TestDatabase
  readonly store: Store
  /** The application's own client. */
  readonly sql: driver.Sql

  private constructor(place: Place, database: TestDatabase, store: Store, sql: driver.Sql) {
    this.place = place
    this.database = database
    this.store = store
    this.sql = sql
  }

  /** With a table `files (blob text)` of the application's, which says what is live. */
  static async of(kind: Kind, options: Options = {}): Promise<Bench> {
    const database = await freshDatabase()
    onTestFinished(() => database.drop())
    const root = await mkdtemp(join(tmpdir(), 'alkblobs-joined-'))
    onTestFinished(() => rm(root, { recursive: true, force: true }))
    const place = { kind, url: database.url, root: join(root, 'large') }
    const sql = driver(database.url, { max: 6, onnotice: () => undefined, connection: { application_name: 'app' } })
    onTestFinished(() => sql.end({ timeout: 1 }))
    await database.query('CREATE TABLE files (blob text PRIMARY KEY)')
    const bench = new Bench(place, database, await openAt(place, options), sql)
    onTestFinished(() => bench.store.close())
    return bench
  }

  /** Another store of the pool, with a life of its own. */
  async another(options: Options = {}): Promise<Store> {
    const store = await openAt(this.place, options)
    onTestFinished(() => store.close())
    return store
  }

  /** A key that nothing protects: its pin is released, and its row has ended. */
  async unprotected(content: Uint8Array): Promise<string> {
    const receipt = await this.store.put(content)
    await receipt.release()
    const rows = "SELECT 1 FROM $.gc_pins WHERE 'blake3:' || encode(key, 'hex') = $1"
    while ((await this.query(rows, [receipt.key])).length > 0) await new Promise(resolve => setTimeout(resolve, 5))
    return receipt.key
  }

  /** Sweeps twice by the application's table: what nothing protects is gone after that. */
  async sweep(store = this.store): Promise<number> {
    const protection = await store.protect({ table: 'public.files', column: 'blob' })
    const reports = [await store.sweep(), await store.sweep()]
    await protection.remove()
    for (const { aborted, cause } of reports) if (aborted !== undefined) throw new Error(aborted, { cause })
    return reports.reduce((sum, { deleted }) => sum + deleted, 0)
  }

  /** The keys that the application refers to. */
  async files(): Promise<string[]> {
    return (await this.database.query<{ blob: string }>('SELECT blob FROM files ORDER BY 1')).map(({ blob }) => blob)
  }

  async entries(): Promise<string[]> {
    return (await this.query("SELECT 'blake3:' || encode(key, 'hex') AS key FROM $.entries ORDER BY 1")).map(
      ({ key }) => `${key}`
    )
  }

  /** Rows of stages, trash and window, and bodies that are on the medium. */
  async left(): Promise<{ stages: number; trash: number; window: number }> {
    const [row] =
      await this.query(`SELECT (SELECT count(*)::int FROM $.stages) AS stages, (SELECT count(*)::int FROM $.trash) AS trash,
      (SELECT count(*)::int FROM $.gc_window) AS window`)
    return row as { stages: number; trash: number; window: number }
  }

  /** A statement past the store; `$.` is the schema of the pool. */
  query(text: string, values: readonly (string | number)[] = []): Promise<Record<string, unknown>[]> {
    return this.database.query(text.replaceAll('$.', 'alkblobs.'), values)
  }

  /** Waits until the server shows what the condition asks of `pg_stat_activity`. */
  async until(condition: string): Promise<void> {
    for (let attempt = 0; attempt < 1_000; attempt++) {
      if (
        (await this.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`))
          .length > 0
      )
        return
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    throw new Error(`the server never showed: ${condition}`)
  }
}

/** A transaction of the application's whose end is the test's to decide. */
export async function transaction(
  sql: driver.Sql,
  options = ''
): Promise<{ tx: driver.TransactionSql; commit(): Promise<void>; rollback(): Promise<void> }> {
  let end: (commits: boolean) => void = () => undefined
  const decided = new Promise<boolean>(resolve => {
    end = resolve
  })
  let over: Promise<unknown> = Promise.resolve()
  const tx = await new Promise<driver.TransactionSql>((resolve, reject) => {
    over = sql.begin(options, async begun => {
      resolve(begun)
      if (!(await decided)) throw new Error('rolled back')
    })
    over.catch(reject)
  })
  return {
    tx,
    async commit() {
      end(true)
      await over
    },
    async rollback() {
      end(false)
      await over.catch(error => {
        if (error.message !== 'rolled back') throw error
      })
    }
  }
}

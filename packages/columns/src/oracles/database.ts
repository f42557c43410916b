/** Looks at a SQLite pool over a connection of its own, opened for each look and closed after it. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { digestOf } from '@alkblobs/core/engine'
import { damagedBytes } from './damage.js'
import { descriptorsBelow } from './folder.js'
import type { OraclePart } from './part.js'

/** The slice of the driver that the oracle needs. */
interface Database {
  prepare(sql: string): { run(...values: unknown[]): unknown; get(...values: unknown[]): unknown }
  close(): void
}
type Driver = new (file: string, options: { fileMustExist: boolean; timeout: number }) => Database

// The very driver the engine uses, found from the engine's package: two versions of SQLite on one file would be another test.
const engine = createRequire(import.meta.url).resolve('@alkblobs/engine-sqlite/package.json')
const Driver = createRequire(engine)('better-sqlite3') as Driver

const LOCK_WAIT_MS = 5_000

const COUNTS = `SELECT
  (SELECT count(*) FROM entries WHERE locator IS NULL) AS inlineEntries,
  (SELECT count(*) FROM stages) AS stages,
  (SELECT count(*) FROM trash) AS trash,
  (SELECT count(*) FROM gc_window WHERE mark = '') AS window,
  (SELECT count(*) FROM gc_pins) AS pins`

const INLINE_BODY = 'SELECT bodies.id, bodies.body FROM entries JOIN bodies USING (id) WHERE key = ?'

const AGE = [
  'UPDATE gc_window SET staged_at = staged_at - ?',
  'UPDATE gc_pins SET expires_at = expires_at - ?',
  'UPDATE stages SET expires_at = expires_at - ?',
  'UPDATE trash SET not_before = not_before - ?'
]

/** ROLLBACK undoes the whole transaction by itself, as SQLite does when the disk is full. */
const refusal = (length: number) =>
  `CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN NEW.length = ${Number(length)}
   BEGIN SELECT RAISE(ROLLBACK, 'the medium refuses this entry'); END`

/** Of a database everything stored can be aged and damaged. */
type DatabasePart = OraclePart & Required<Pick<OraclePart, 'age' | 'expirePins' | 'corrupt' | 'handles'>>

/** The part of an oracle that looks at a database file. */
export function databasePart(file: string): DatabasePart {
  /** Whether the file is a pool by now: before the first write there is no file, or one without tables. */
  const look = <T>(otherwise: T, act: (database: Database) => T): T => {
    if (!existsSync(file)) return otherwise
    const database = new Driver(file, { fileMustExist: true, timeout: LOCK_WAIT_MS })
    try {
      const tables = database.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE name = 'entries'").get()
      return (tables as { count: number }).count === 0 ? otherwise : act(database)
    } finally {
      database.close()
    }
  }
  return {
    counts: async () => look({}, database => database.prepare(COUNTS).get() as Record<string, number>),
    exists: async () => existsSync(file),
    async age(byMs) {
      look(undefined, database => {
        for (const statement of AGE) database.prepare(statement).run(byMs)
      })
    },
    async expirePins(key) {
      look(undefined, database => {
        if (key === undefined) database.prepare('UPDATE gc_pins SET expires_at = 0').run()
        else database.prepare('UPDATE gc_pins SET expires_at = 0 WHERE key = ?').run(digestOf(key))
      })
    },
    async corrupt(key, how) {
      return look(false, database => {
        const row = database.prepare(INLINE_BODY).get(digestOf(key))
        if (row === undefined) return false
        const { id, body } = row as { id: number; body: Uint8Array }
        database.prepare('UPDATE bodies SET body = ? WHERE id = ?').run(damagedBytes(body, how), id)
        return true
      })
    },
    async refuse(length) {
      look(undefined, database => {
        database.prepare('DROP TRIGGER IF EXISTS refuse').run()
        if (length !== undefined) database.prepare(refusal(length)).run()
      })
    },
    handles: () => descriptorsBelow(dirname(file))
  }
}

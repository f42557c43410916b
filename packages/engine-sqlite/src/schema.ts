/**
 * The layout of the file. All times are milliseconds since 1970 by the machine's clock, all keys the 32 raw bytes of the
 * digest, all lengths bytes.
 *
 * | table     | one row for each                                                                                      |
 * |-----------|-------------------------------------------------------------------------------------------------------|
 * | meta      | pool (exactly one): its record (NULL until there is one) and how often its lease was taken            |
 * | entries   | committed blob; `id` of its body if that lies inline, else the `locator` at which a body store keeps it |
 * | bodies    | inline body: apart from the entries, so that listing, sweeping and usage never touch pages of bodies   |
 * | gc_pins   | key and holder                                                                                        |
 * | gc_window | candidate of a sweep (`mark` is '') or direct delete under way (its mark); one UPDATE cancels them all |
 * | stages    | body being written                                                                                    |
 * | trash     | body that no entry uses; `durable` = 1 once the transaction that trashed it cannot be undone           |
 *
 * Small rows that are found by their key have no rowid: one tree to write and to scan instead of two. Bodies have one: rows
 * that overflow their page are read three times faster so.
 */
import { EngineFault } from '@alkblobs/core/engine'
import type { Connection } from './connection.js'

/** "alkb": marks the file as a pool, in its header. */
export const APPLICATION_ID = 0x616c6b62
/** Version of this layout; a file with a later one is refused. */
export const SCHEMA_VERSION = 1
/** Measured: 16 KiB beats 4 and 8 KiB for joined puts of 16 KiB bodies (16,300 a second against 11,400 and 13,600). */
export const PAGE_SIZE = 16 * 1024

const LAYOUT = `
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  pool_id TEXT, protocol INTEGER, algorithm TEXT, window_delay_ms INTEGER, bodies_claimed INTEGER,
  forked_from TEXT,
  lease INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO meta (one) VALUES (1);

CREATE TABLE entries (
  key BLOB PRIMARY KEY, length INTEGER NOT NULL, id INTEGER, locator TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE gc_pins (
  key BLOB NOT NULL, owner TEXT NOT NULL, generation INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  PRIMARY KEY (key, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE gc_window (
  key BLOB NOT NULL, mark TEXT NOT NULL, staged_at INTEGER NOT NULL, delay_ms INTEGER NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (key, mark)
) STRICT, WITHOUT ROWID;
CREATE INDEX gc_window_due ON gc_window (staged_at, key, delay_ms, cancelled) WHERE mark = '';

CREATE TABLE stages (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE trash (
  what TEXT PRIMARY KEY, key BLOB, length INTEGER, not_before INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, durable INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${SCHEMA_VERSION};
`

/**
 * What the file behind a connection is. One read transaction, so that a pool being made at this moment is not seen half.
 * @throws EngineFault `foreign` or `newer` for what must be left alone.
 */
export function recognise(connection: Connection): 'pool' | 'virgin' {
  connection.exec('BEGIN')
  try {
    return identify(connection)
  } finally {
    connection.rollback()
  }
}

/** Makes the layout in a file that is still virgin; whoever comes second finds it made. */
export function makeLayout(connection: Connection): void {
  connection.exec('BEGIN IMMEDIATE')
  try {
    if (identify(connection) === 'virgin') connection.exec(LAYOUT)
    connection.exec('COMMIT')
  } catch (error) {
    connection.rollback()
    throw error
  }
}

function identify(connection: Connection): 'pool' | 'virgin' {
  const application = connection.pragma('application_id')
  if (application === APPLICATION_ID) {
    const version = Number(connection.pragma('user_version'))
    if (version > SCHEMA_VERSION)
      throw new EngineFault('newer', `the file has layout ${version}, this package knows ${SCHEMA_VERSION}`)
    return 'pool'
  }
  const tables = connection.row<[number]>('SELECT count(*) FROM sqlite_schema')?.[0]
  if (application === 0 && tables === 0) return 'virgin'
  throw new EngineFault('foreign', 'the file is a database of something else')
}

/**
 * One SQLite connection, its prepared statements, and the certainty that it still talks to the file under its path.
 *
 * Nothing here ever opens the file by other means than SQLite: closing any other descriptor of it would end, by the rules
 * of POSIX, every lock that this process holds on it.
 */
import { statSync } from 'node:fs'
import { EngineFault } from '@alkblobs/core/engine'
import Database from 'better-sqlite3'
import { isBusy, named } from './classify.js'
import { PAGE_SIZE } from './schema.js'

export type Column = string | number | null | Uint8Array

/**
 * Bytes in the log at which it is written back: 4 MiB, and 16 MiB once the file is as large as that. A page that many commits wrote is
 * written back once, so a longer log is cheaper: joined puts of 16 KiB reached two thirds of raw transactions with 4 MiB, and nine tenths
 * with 16. A small pool must not need a disk several times its size: a full one is emptied by removals, which need the log.
 */
const LOG_LENGTH = { small: 4 * 1024 * 1024, large: 16 * 1024 * 1024 } as const
/** Room for the upper levels of all trees and what was read lately; negative means KiB. */
const CACHE_KIB = -16 * 1024
/** A log that a long reader let grow is cut back to this many bytes: more than a checkpoint lets it grow, so that it is not cut each time. */
const LOG_LENGTH_KEPT = 32 * 1024 * 1024
const SYNCHRONOUS = { os: 1, disk: 2 } as const

interface Identity {
  readonly dev: number
  readonly ino: number
  /** Length of the file in bytes. */
  readonly size: number
}

export class Connection {
  readonly durability: 'disk' | 'os'
  readonly #file: string
  readonly #db: Database.Database
  readonly #identity: Identity
  readonly #readers = new Map<string, Database.Statement>()
  readonly #writers = new Map<string, Database.Statement>()
  #isReadyToWrite = false
  #isProven = false
  #wasPresentThisTurn = false
  #isLogLong = false

  /** Opens a file that is there. @throws as SQLite does, or EngineFault `transient` if the file keeps being replaced. */
  constructor(file: string, durability: 'disk' | 'os') {
    this.#file = file
    this.durability = durability
    for (let attempt = 0; ; attempt++) {
      const before = identityOf(file)
      const db = openDatabase(file)
      const after = identityOf(file)
      if (before && after && isSame(before, after)) {
        this.#db = db
        this.#identity = after
        return
      }
      db.close()
      if (attempt === 2) throw new EngineFault('transient', 'the file was replaced while it was being opened')
    }
  }

  /** Settings that last as long as the connection. Made once the file is known to be a pool: some of them read it. */
  configure(): void {
    this.#db.pragma(`cache_size = ${CACHE_KIB}`)
    this.#db.pragma(`wal_autocheckpoint = ${LOG_LENGTH.small / PAGE_SIZE}`)
    this.#db.pragma(`journal_size_limit = ${LOG_LENGTH_KEPT}`)
    this.#db.pragma('trusted_schema = OFF')
    this.setDurability(this.durability)
    // What macOS calls fsync does not reach the disk; what does has a name of its own.
    if (process.platform === 'darwin') this.#db.pragma('fullfsync = ON')
    if (process.platform === 'darwin') this.#db.pragma('checkpoint_fullfsync = ON')
  }

  /** How far the following commits reach. Not within a transaction. */
  setDurability(durability: 'disk' | 'os'): void {
    this.#db.pragma(`synchronous = ${SYNCHRONOUS[durability]}`)
  }

  /** Only a file without pages takes a page size; others keep theirs. */
  setPageSize(): void {
    this.#db.pragma(`page_size = ${PAGE_SIZE}`)
  }

  /** Makes the file write ahead, if it does not yet: a pool that was just made, or restored from a copy. */
  readyToWrite(): void {
    if (this.#isReadyToWrite) return
    const mode = this.#db.pragma('journal_mode = WAL', { simple: true })
    if (mode !== 'wal') throw new EngineFault('denied', 'the file cannot be put into write-ahead mode on this medium')
    this.#isReadyToWrite = true
  }

  /** After the first commit: the promised durability must really be in force, for a driver may have settings of its own. */
  proveDurability(promised: 'disk' | 'os'): void {
    if (this.#isProven) return
    const found = this.pragma('synchronous')
    if (found !== SYNCHRONOUS[promised])
      throw new EngineFault('unknown', `synchronous is ${String(found)} after a commit`)
    this.#isProven = true
  }

  /** @throws EngineFault `transient` if the path no longer leads to the open file, where reads and writes would be in vain. */
  checkPresent(): void {
    const found = identityOf(this.#file)
    if (!found || !isSame(found, this.#identity))
      throw new EngineFault('transient', 'the file was moved, removed or replaced while it was open')
    if (found.size >= LOG_LENGTH.large && !this.#isLogLong) this.#lengthenLog()
  }

  /**
   * The same for a look, asked once for all looks of one turn of the event loop: the answer costs a quarter of what a `get` of 16 KiB does
   * in all. So a look may answer from a file that was moved while this turn lasted, as if it had come a moment before.
   */
  checkPresentThisTurn(): void {
    if (this.#wasPresentThisTurn) return
    this.checkPresent()
    this.#wasPresentThisTurn = true
    setImmediate(() => {
      this.#wasPresentThisTurn = false
    })
  }

  /**
   * Moves the log into the file and cuts it off, as far as readers let it. On a full disk this is what makes room: even a
   * removal must first be written to the log.
   */
  emptyLog(): void {
    this.#db.pragma('wal_checkpoint(TRUNCATE)')
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /** SQLite ends a transaction by itself when the disk is full or fails, and a second ROLLBACK would hide that cause. */
  rollback(): void {
    if (!this.#db.inTransaction) return
    try {
      this.#db.exec('ROLLBACK')
    } catch (error) {
      // Only what ended the transaction matters to the caller; but a transaction that cannot be ended is the end of it.
      if (this.#db.inTransaction) throw error
    }
  }

  pragma(name: 'application_id' | 'user_version' | 'synchronous'): unknown {
    return this.#db.pragma(name, { simple: true })
  }

  row<T extends Column[]>(sql: string, ...values: Column[]): T | undefined {
    return this.#reader(sql).get(...values) as T | undefined
  }

  rows<T extends Column[]>(sql: string, ...values: Column[]): T[] {
    return this.#reader(sql).all(...values) as T[]
  }

  /** Runs a statement that answers nothing; says how many rows it changed. */
  run(sql: string, ...values: Column[]): number {
    return this.#writer(sql).run(...values).changes
  }

  close(): void {
    this.#db.close()
  }

  #lengthenLog(): void {
    this.#isLogLong = true
    this.#db.pragma(`wal_autocheckpoint = ${LOG_LENGTH.large / PAGE_SIZE}`)
  }

  #reader(sql: string): Database.Statement {
    const prepared = this.#readers.get(sql) ?? this.#db.prepare(sql).raw()
    if (!this.#readers.has(sql)) this.#readers.set(sql, prepared)
    return prepared
  }

  #writer(sql: string): Database.Statement {
    const prepared = this.#writers.get(sql) ?? this.#db.prepare(sql)
    if (!this.#writers.has(sql)) this.#writers.set(sql, prepared)
    return prepared
  }
}

/** Opens with no waiting of SQLite's own: it would block the event loop. */
export function openDatabase(file: string): Database.Database {
  try {
    return new Database(file, { fileMustExist: true, timeout: 0 })
  } catch (error) {
    throw isBusy(error) ? error : named(error, file)
  }
}

function identityOf(file: string): Identity | undefined {
  return statSync(file, { throwIfNoEntry: false })
}

function isSame(one: Identity, other: Identity): boolean {
  return one.ino === other.ino && one.dev === other.dev
}

/**
 * The file: absent, virgin, a pool, or something that must be left alone.
 *
 * Looking creates nothing. Making a pool is three steps, each of which may be interrupted or done by ten processes at once:
 *   1. the folders and an empty file, readable by its owner alone (the log and its index inherit that);
 *   2. the layout, in one transaction that looks again;
 *   3. write-ahead mode, before the first write of each connection.
 */

import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, realpathSync, statSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { EngineFault } from '@alkblobs/core/engine'
import { named } from './classify.js'
import type { CheckedConfig } from './config.js'
import { Connection } from './connection.js'
import { makeLayout, recognise } from './schema.js'

export class Medium {
  readonly file: string
  readonly durability: 'disk' | 'os'
  #connection: Connection | undefined

  constructor({ file, durability }: CheckedConfig) {
    this.file = file
    this.durability = durability
  }

  /**
   * The connection to the pool; `undefined` while there is none. Looks anew each time, so a pool that another process made is
   * found. A file that vanished after it was opened is an error, never "no pool".
   */
  attach(): Connection | undefined {
    if (this.#connection === undefined) return this.#find()
    this.#connection.checkPresent()
    return this.#connection
  }

  /** The same for what only looks. */
  attachToLook(): Connection | undefined {
    if (this.#connection === undefined) return this.#find()
    this.#connection.checkPresentThisTurn()
    return this.#connection
  }

  #find(): Connection | undefined {
    const found = statSync(this.file, { throwIfNoEntry: false })
    if (found === undefined || (found.isFile() && found.size === 0)) return undefined
    if (!found.isFile()) throw new EngineFault('foreign', 'the path leads to something that is no file')
    return this.#keep(new Connection(this.file, this.durability))
  }

  /** The connection to the pool, which is made where there is none. */
  create(): Connection {
    const there = this.attach()
    if (there !== undefined) return there
    makeFile(this.file)
    const connection = new Connection(this.file, this.durability)
    try {
      connection.setPageSize()
      connection.setDurability('disk')
      makeLayout(connection)
    } catch (error) {
      connection.close()
      throw error
    }
    const kept = this.#keep(connection)
    if (kept === undefined) throw new EngineFault('transient', 'the file was emptied while it was being made')
    return kept
  }

  /** Where the lease lies: beside the real file, whatever links led there. */
  leaseFile(): string {
    return `${realpathSync(this.file)}-lease`
  }

  close(): void {
    this.#connection?.close()
    this.#connection = undefined
  }

  #keep(connection: Connection): Connection | undefined {
    try {
      if (recognise(connection) === 'pool') {
        connection.configure()
        this.#connection = connection
        return connection
      }
    } catch (error) {
      connection.close()
      throw named(error, this.file)
    }
    connection.close()
    return undefined
  }
}

/**
 * Makes an empty file of mode 0600 in folders of mode 0700, unless there is one. The file gets its name only when it is
 * closed, for closing a descriptor of a file that SQLite has open elsewhere in this process would end SQLite's locks.
 */
export function makeFile(file: string): void {
  makeFolders(dirname(file))
  if (statSync(file, { throwIfNoEntry: false }) !== undefined) return
  const unnamed = `${file}-${randomUUID()}`
  closeSync(openSync(unnamed, 'wx', 0o600))
  try {
    linkSync(unnamed, file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error
    makeWithoutLinks(file)
  } finally {
    unlinkSync(unnamed)
  }
}

/** On a file system without links, all that is left is to be quick: only a thread that opens the file in between could lose a lock. */
function makeWithoutLinks(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/**
 * Makes a folder and those above it, and makes their names durable. One at a time: Node's own recursive way goes round for ever
 * where a file system answers that neither the folder nor the one above it is there to make it in.
 */
function makeFolders(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return
  const above = dirname(folder)
  if (above !== folder) makeFolders(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  syncFolder(above)
}

function syncFolder(folder: string): void {
  // Windows has no descriptors of folders to sync, and writes names at once.
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * One body being written: `create`, `write`, `seal`, `discard`.
 *
 *   create    stage/<stage id>, which must not be there
 *   write     small chunks are gathered into windows; one window is on its way to the disk while the next one fills
 *   seal      the last window, sync, close, rename into the shard, sync the shard (and, when new, the folders above it)
 *
 * Syncing already begins while bytes still come, so that little is left to wait for at the end. Whatever fails once fails
 * the body: nothing is tried again on a descriptor whose sync has failed.
 */
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type BlobKey,
  type BodyWriter,
  EngineFault,
  type Locator,
  type StageId,
  WINDOW_LENGTH
} from '@alkblobs/core/engine'
import { finishFile, makeFolder, renameInto } from '../durable.js'
import { CREATE, errno, FILE_MODE, unless } from '../files.js'
import { bodyNameOf, bodyPath, halfPath, parseStageId, STAGE_FOLDER, shardFolders } from '../layout.js'
import type { Medium } from '../medium.js'
import { confirm } from './claim.js'
import { checkStageFolder, forgetShard, unsettledFolders } from './shard.js'

/** Bytes between two syncs begun ahead of the end; larger steps leave the disk idle, smaller ones cost more syncs. */
const SYNC_LENGTH = 8 * WINDOW_LENGTH
/** Somebody who removes empty folders may be as fast as we are; not this often in a row. */
const RENAME_TRIES = 16

export async function createBody(medium: Medium, id: StageId, lengthHint: number | undefined): Promise<BodyWriter> {
  const stage = parseStageId(id)
  await checkUnused(medium, stage)
  const open = async () => {
    await checkStageFolder(medium)
    return await medium.files.open(halfPath(medium.root, stage), CREATE, FILE_MODE)
  }
  try {
    return new FileWriter(medium, stage, await open(), lengthHint)
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
    await confirm(medium)
    await makeFolder(medium.files, join(medium.root, STAGE_FOLDER))
    return new FileWriter(medium, stage, await open(), lengthHint)
  }
}

/** A stage is used once: what it sealed may have an entry, which a second body could only damage (BODY-CREATE-1). */
async function checkUnused({ files, root }: Medium, stage: StageId): Promise<void> {
  const names = await unless(files.readdir(shardFolders(root, stage)[1]), 'ENOENT')
  if (names?.some(name => name.startsWith(stage)))
    throw new EngineFault('unknown', 'the stage has a sealed body already')
}

class FileWriter implements BodyWriter {
  readonly #medium: Medium
  readonly #stage: StageId
  #handle: FileHandle | undefined
  readonly #bufferLength: number
  /** The window that fills, and the one that may be on its way to the disk; made when first needed. */
  #filling: Buffer | undefined
  #spare: Buffer | undefined
  #filled = 0
  #length = 0
  #syncedLength = 0
  #failure: { readonly error: unknown } | undefined
  #writing: Promise<void> = Promise.resolve()
  #syncing: Promise<void> | undefined
  /** Where the bytes lie: what `discard` removes, also after a seal whose answer came too late for anybody to use it. */
  #made: string | undefined

  constructor(medium: Medium, stage: StageId, handle: FileHandle, lengthHint = WINDOW_LENGTH) {
    this.#medium = medium
    this.#stage = stage
    this.#handle = handle
    this.#made = halfPath(medium.root, stage)
    this.#bufferLength = Math.min(Math.max(lengthHint, 4_096), WINDOW_LENGTH)
  }

  async write(chunk: Uint8Array): Promise<void> {
    let at = 0
    while (at < chunk.byteLength) {
      this.#check()
      if (this.#filled === 0 && chunk.byteLength - at >= WINDOW_LENGTH) {
        // Large enough as it is. The chunk is the caller's again when this call resolves, so the write is waited for.
        const end = at + WINDOW_LENGTH
        await this.#writing
        this.#check()
        this.#start(chunk.subarray(at, end))
        await this.#writing
        at = end
        continue
      }
      this.#filling ??= Buffer.allocUnsafeSlow(this.#bufferLength)
      const taken = Math.min(chunk.byteLength - at, this.#filling.length - this.#filled)
      this.#filling.set(chunk.subarray(at, at + taken), this.#filled)
      this.#filled += taken
      at += taken
      if (this.#filled === this.#filling.length) await this.#flush()
    }
    this.#check()
  }

  async seal(key: BlobKey): Promise<Locator> {
    try {
      return await this.#seal(key)
    } catch (error) {
      // The caller hears of the failure; what could not be removed is trash by its stage id.
      await this.discard().catch(() => {})
      throw error
    }
  }

  async discard(): Promise<void> {
    this.#fail(new EngineFault('unknown', 'the body was discarded'))
    try {
      await this.#close(handle => handle.close())
    } finally {
      const made = this.#made
      if (made !== undefined) await unless(this.#medium.files.unlink(made), 'ENOENT')
      this.#made = undefined
    }
  }

  async #seal(key: BlobKey): Promise<Locator> {
    if (this.#filled > 0) await this.#flush()
    await this.#writing
    await this.#syncing
    this.#check()
    await this.#close(finishFile)
    const name = bodyNameOf(this.#stage, key, this.#length)
    const path = bodyPath(this.#medium.root, name)
    await this.#moveTo(path)
    return name.locator
  }

  async #moveTo(path: string): Promise<void> {
    const half = halfPath(this.#medium.root, this.#stage)
    for (let tries = 1; ; tries++) {
      try {
        const folders = await unsettledFolders(this.#medium, this.#stage)
        // Set first: if the rename succeeds and the sync fails, it is the new name that must go.
        this.#made = path
        await renameInto(this.#medium.files, half, path, folders)
        for (const folder of folders) this.#medium.settled.add(folder)
        return
      } catch (error) {
        const isHalf = (await this.#medium.files.lstat(half).catch(() => undefined)) !== undefined
        if (isHalf) this.#made = half
        if (errno(error) !== 'ENOENT') throw error
        await confirm(this.#medium)
        if (!isHalf) throw new EngineFault('gone', 'the body was removed while it was being written', error)
        // Somebody removed the shard while it was empty.
        forgetShard(this.#medium, this.#stage)
        if (tries === RENAME_TRIES) throw error
      }
    }
  }

  /** Sends the filled window on its way, as soon as the one before has arrived. */
  async #flush(): Promise<void> {
    await this.#writing
    this.#check()
    const full = this.#filling as Buffer
    const filled = this.#filled
    this.#filling = this.#spare
    this.#spare = full
    this.#filled = 0
    this.#start(full.subarray(0, filled))
  }

  #start(bytes: Uint8Array): void {
    this.#writing = this.#writeAll(bytes).catch(error => this.#fail(error))
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    const handle = this.#handle as FileHandle
    for (let at = 0; at < bytes.byteLength; ) {
      const { bytesWritten } = await handle.write(bytes, at, bytes.byteLength - at, this.#length)
      at += bytesWritten
      this.#length += bytesWritten
    }
    if (this.#length - this.#syncedLength < SYNC_LENGTH || this.#syncing !== undefined) return
    this.#syncedLength = this.#length
    this.#syncing = handle.datasync().then(
      () => {
        this.#syncing = undefined
      },
      error => this.#fail(error)
    )
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** Waits for what is under way and closes, once. */
  async #close(close: (handle: FileHandle) => Promise<void>): Promise<void> {
    await this.#writing
    await this.#syncing
    const handle = this.#handle
    if (handle === undefined) return
    this.#handle = undefined
    try {
      await close(handle)
    } finally {
      this.#filling = undefined
      this.#spare = undefined
      this.#medium.descriptors.release('write')
    }
  }
}

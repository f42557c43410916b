/**
 * Every step that must outlive a power loss, each in one function with the sync that makes it so: no call site can do the
 * step and forget the sync.
 *
 * A file's bytes are safe after a sync of the file, its name after a sync of the folder that holds the name, and that
 * folder's own name after a sync of the folder above. A sync that failed is never tried again on the same descriptor: the
 * kernel reports a lost page once, and the second sync would succeed over the loss.
 */
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CREATE, errno, FILE_MODE, type Files, FOLDER, FOLDER_MODE } from './files.js'

/** What Windows answers to somebody who opens or syncs a folder; it writes names through by itself. */
const UNSYNCABLE_ON_WINDOWS = new Set(['EPERM', 'EISDIR', 'EINVAL', 'EACCES'])

/** Makes the names in a folder, and their absence, durable. */
export async function syncFolder(files: Files, folder: string): Promise<void> {
  try {
    const handle = await files.open(folder, FOLDER)
    await syncAndClose(handle, () => handle.sync())
  } catch (error) {
    if (process.platform !== 'win32' || !UNSYNCABLE_ON_WINDOWS.has(errno(error) ?? '')) throw error
  }
}

/** Makes the bytes of a file durable and closes it, whatever happens. */
export function finishFile(handle: FileHandle): Promise<void> {
  // The data and the length, which is all of the inode that a reader needs.
  return syncAndClose(handle, () => handle.datasync())
}

async function syncAndClose(handle: FileHandle, sync: () => Promise<void>): Promise<void> {
  try {
    await sync()
  } finally {
    await handle.close()
  }
}

/** Writes a small file that is whole and durable, or not there. Its name is not yet durable: see `linkInto`. */
export async function writeWhole(files: Files, path: string, text: string): Promise<void> {
  const handle = await files.open(path, CREATE, FILE_MODE)
  try {
    try {
      await handle.writeFile(text)
    } catch (error) {
      await handle.close()
      throw error
    }
    await finishFile(handle)
  } catch (error) {
    await files.unlink(path)
    throw error
  }
}

/** Makes a folder, or finds it. Either way its name is durable then, also if whoever made it has not come to the sync yet. */
export async function makeFolder(files: Files, folder: string): Promise<void> {
  await mkdir(files, folder)
  await syncFolder(files, dirname(folder))
}

async function mkdir(files: Files, folder: string): Promise<void> {
  try {
    await files.mkdir(folder, FOLDER_MODE)
  } catch (error) {
    if (errno(error) !== 'EEXIST') throw error
  }
}

/** Makes a folder and those above it that are missing. */
export async function makeFolders(files: Files, folder: string): Promise<void> {
  try {
    // Through a link too: where the user's root leads is the user's choice.
    await files.stat(folder)
  } catch (error) {
    if (errno(error) !== 'ENOENT' || dirname(folder) === folder) throw error
    await makeFolders(files, dirname(folder))
    await makeFolder(files, folder)
  }
}

/**
 * Moves a file to a name that nobody else uses. `folders` are those on the way that may be missing or not yet durable, outer one
 * first. They are synced after the move: whoever removes empty folders has the least time for it then.
 */
export async function renameInto(files: Files, from: string, to: string, folders: readonly string[]): Promise<void> {
  for (const folder of folders) await mkdir(files, folder)
  await files.rename(from, to)
  const syncs = [to, ...folders].map(path => syncFolder(files, dirname(path)))
  const failed = (await Promise.allSettled(syncs)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

/** Gives a file a second name; fails with EEXIST, changing nothing, where that name is taken. */
export async function linkInto(files: Files, from: string, to: string): Promise<void> {
  await files.link(from, to)
  await syncFolder(files, dirname(to))
}

/** Makes an empty file whose being there is the message. One that is there already is as good. */
export async function makeMarker(files: Files, path: string): Promise<void> {
  try {
    await (await files.open(path, CREATE, FILE_MODE)).close()
  } catch (error) {
    if (errno(error) !== 'EEXIST') throw error
  }
  await syncFolder(files, dirname(path))
}

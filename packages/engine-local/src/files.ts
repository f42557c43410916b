/** The slice of `node:fs` that this engine uses: one seam, so that tests can record, delay and break each step. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs'
import { type FileHandle, link, lstat, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { EngineFault } from '@alkblobs/core/engine'

export const nodeFiles = {
  link,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  stat,
  unlink,
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync
}

export type Files = typeof nodeFiles

/** Windows knows neither flag; there a link needs rights that an ordinary user does not have. */
const noFollow = constants.O_NOFOLLOW ?? 0

/** To read what is there, fail on a link, and not wait for whoever might write into a pipe that lies in a file's place. */
export const READ = constants.O_RDONLY | noFollow | (constants.O_NONBLOCK ?? 0)
/** To make what is not there, and fail on anything that is. */
export const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow
export const FOLDER = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0)

export const FILE_MODE = 0o600
export const FOLDER_MODE = 0o700

/** The system's name for an error: `ENOENT`. */
export function errno(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}

/** Answers `undefined` where `step` fails with one of these codes; every other failure stays one. */
export async function unless<Result>(step: Promise<Result>, ...codes: string[]): Promise<Result | undefined> {
  try {
    return await step
  } catch (error) {
    if (codes.includes(errno(error) ?? '')) return undefined
    throw error
  }
}

/** @throws EngineFault `corrupt` for a folder, a pipe or anything else in the place of a file. */
export function checkFile(stats: { isFile(): boolean }): void {
  if (!stats.isFile()) throw new EngineFault('corrupt', 'something else lies in the place of a file')
}

/** Opens a file, and only a file, to read it. */
export async function openFile(files: Files, path: string): Promise<FileHandle> {
  const handle = await files.open(path, READ)
  try {
    checkFile(await handle.stat())
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

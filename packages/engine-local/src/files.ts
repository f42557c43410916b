/** The slice of `node:fs` that this engine uses: one seam, so that tests can record, delay and break each step. */
import { closeSync, constants, lstatSync, openSync, readSync } from 'node:fs'
import { link, lstat, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises'

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
  lstatSync,
  openSync,
  readSync
}

export type Files = typeof nodeFiles

/** Windows knows neither flag; there a link needs rights that an ordinary user does not have. */
const noFollow = constants.O_NOFOLLOW ?? 0

/** To read what is there, and fail on a link. */
export const READ = constants.O_RDONLY | noFollow
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

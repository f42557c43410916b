/** Where a column keeps what it makes: one folder for each pool, below the system's temporary folder, gone after the row. */
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A fresh folder that nobody else has, below the temporary folder unless told otherwise. */
export async function makeFolder(below = tmpdir()): Promise<string> {
  return await mkdtemp(join(below, 'alkblobs-column-'))
}

/** A folder whose files lie in memory, where a file is synced at once; the temporary folder where the system has none. */
export function memoryFolder(): string {
  const folder = '/dev/shm'
  try {
    accessSync(folder, constants.W_OK)
    return folder
  } catch {
    return tmpdir()
  }
}

/** Removes a folder and all that is in it; gone already is done. */
export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

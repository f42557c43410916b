/** Where a column keeps what it makes: one folder for each pool, below the system's temporary folder, gone after the row. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A fresh folder that nobody else has. */
export async function makeFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), 'alkblobs-column-'))
}

/** Removes a folder and all that is in it; gone already is done. */
export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

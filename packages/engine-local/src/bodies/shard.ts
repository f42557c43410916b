/** The two folders on the way to a sealed body: looked at before every use. */
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { EngineFault, type StageId } from '@alkblobs/core/engine'
import { unless } from '../files.js'
import { STAGE_FOLDER, shardFolders } from '../layout.js'
import type { Medium } from '../medium.js'
import { confirm } from './claim.js'

/**
 * Refuses a shard that is a link: what lies behind it is not ours to read, write or remove. The system calls this engine has
 * follow links in the middle of a path, so the folders are looked at, not opened.
 * @throws the system's ENOENT if one is missing, EngineFault `corrupt` if one is no folder.
 */
export async function checkShard({ root, files }: Medium, stage: string): Promise<void> {
  const found = await Promise.all(shardFolders(root, stage).map(folder => files.lstat(folder)))
  for (const stats of found) checkFolder(stats)
}

/** The same in one blocking go, for reads that are too small to wait for the thread pool. */
export function checkShardSync({ root, files }: Medium, stage: string): void {
  for (const folder of shardFolders(root, stage)) checkFolder(files.lstatSync(folder))
}

/** The folders of a shard that are missing, or of which this store cannot know that their names are durable. */
export async function unsettledFolders(medium: Medium, stage: StageId): Promise<readonly string[]> {
  const { files, root, settled } = medium
  const unsettled: string[] = []
  for (const folder of shardFolders(root, stage)) {
    const stats = await unless(files.lstat(folder), 'ENOENT')
    if (stats === undefined) await confirm(medium)
    else checkFolder(stats)
    // One that is there may have been made a moment ago by somebody who has not come to the sync yet.
    if (stats === undefined || !settled.has(folder)) unsettled.push(folder)
  }
  return unsettled
}

/** After somebody else removed it: what was durable then is not there any more. */
export function forgetShard({ root, settled }: Medium, stage: StageId): void {
  for (const folder of shardFolders(root, stage)) settled.delete(folder)
}

/** @throws the system's ENOENT if the folder of half-written bodies is missing, EngineFault `corrupt` if it is no folder. */
export async function checkStageFolder({ root, files }: Medium): Promise<void> {
  checkFolder(await files.lstat(join(root, STAGE_FOLDER)))
}

function checkFolder(stats: Stats): void {
  if (!stats.isDirectory())
    throw new EngineFault('corrupt', 'something else lies in the place of a folder; links are not followed')
}

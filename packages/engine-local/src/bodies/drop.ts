/**
 * Removes what stages and locators made: `drop`.
 *
 * Nothing is removed, and nothing counts as gone, unless the claim is readable before and after. Folders are synced once for
 * the whole batch, also those in which nothing was found: an earlier drop may have removed the file and not come to the sync.
 * Empty shards are never removed: a writer may be about to use them, and there are 65,792 at most.
 */
import { dirname, join } from 'node:path'
import type { Call, DropResult, Locator, StageId } from '@alkblobs/core/engine'
import { syncFolder } from '../durable.js'
import { errno, unless } from '../files.js'
import { bodyPath, halfPath, isStageId, parseBodyName, STAGE_FOLDER, shardFolders } from '../layout.js'
import { checkCall, checkClaimed, type Medium } from '../medium.js'
import { confirm } from './claim.js'
import { checkShard, checkStageFolder } from './shard.js'

/** Unlinks and syncs under way at once: enough to keep a disk busy, few beside the four threads they share with everybody. */
const AT_ONCE = 8

type What = Locator | StageId

export async function drop(medium: Medium, what: readonly What[], call: Call): Promise<readonly DropResult[]> {
  const failures = new Map<What, unknown>()
  const folders = new Map<string, What[]>()
  const attempt = async (items: readonly What[], step: () => Promise<void>) => {
    try {
      checkCall(call)
      await step()
    } catch (error) {
      for (const item of items) if (!failures.has(item)) failures.set(item, error)
    }
  }
  const ready = async () => {
    checkClaimed(medium)
    await confirm(medium)
  }
  await attempt(what, ready)
  if (failures.size === 0) {
    await inTurns(what, item =>
      attempt([item], async () => {
        for (const folder of await remove(medium, item)) {
          const items = folders.get(folder) ?? []
          folders.set(folder, items)
          items.push(item)
        }
      })
    )
    await inTurns([...folders], ([folder, items]) => attempt(items, () => syncUpwards(medium, folder)))
    await attempt(what, ready)
  }
  return what.map(item => (failures.has(item) ? { what: item, error: failures.get(item) } : { what: item }))
}

/** Removes what is there and answers the folders to sync. */
async function remove(medium: Medium, item: What): Promise<string[]> {
  const { algorithm, files, root } = medium
  const stage = isStageId(item) ? item : parseBodyName(item, algorithm)?.stage
  // A name that this engine never makes is the name of nothing here, so there is nothing to remove.
  if (stage === undefined) return []
  const folders: string[] = []
  medium.kept.close(stage)
  if (await isThere(checkStageFolder(medium))) {
    await unless(files.unlink(halfPath(root, stage)), 'ENOENT')
    folders.push(join(root, STAGE_FOLDER))
  }
  const shard = shardFolders(root, stage)[1]
  if (!(await isThere(checkShard(medium, stage)))) return folders
  // A stage seals at most one body, so removing all that bear its name is removing that one.
  const names = item === stage ? ((await unless(files.readdir(shard), 'ENOENT')) ?? []) : [item]
  for (const name of names) {
    const body = parseBodyName(name, algorithm)
    if (body?.stage === stage) await unless(files.unlink(bodyPath(root, body)), 'ENOENT')
  }
  // Once more: a read may have opened it since. From here on it has no name to open it by.
  medium.kept.close(stage)
  return [...folders, shard]
}

/** Somebody else may remove a folder that ran empty; then it is the one above it that says so, and is synced. */
async function syncUpwards(medium: Medium, folder: string): Promise<void> {
  try {
    await syncFolder(medium.files, folder)
  } catch (error) {
    if (errno(error) !== 'ENOENT' || folder === medium.root) throw error
    await syncUpwards(medium, dirname(folder))
  }
}

async function isThere(check: Promise<void>): Promise<boolean> {
  try {
    await check
    return true
  } catch (error) {
    if (errno(error) === 'ENOENT') return false
    throw error
  }
}

async function inTurns<Item>(items: readonly Item[], step: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values()
  const lane = async () => {
    for (const item of rest) await step(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

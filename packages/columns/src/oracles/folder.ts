/** Walks the folder of a local body store, with nothing but the file system. */
import { existsSync } from 'node:fs'
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rmdir,
  symlink,
  truncate,
  unlink
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type BlobKey, digestHexOf } from '@alkblobs/core/engine'
import { damagedBytes } from './damage.js'
import type { OraclePart } from './part.js'

const SHARD = /^[0-9a-f]{2}$/
const BODY = /^[0-9a-f]{32}\.[0-9a-f]{64}\.[0-9]+$/

/** A folder that is not there holds nothing. Anything else that goes wrong is an error of the test. */
async function names(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The two levels of shard folders, inner ones first. */
async function shards(root: string): Promise<{ inner: readonly string[]; outer: readonly string[] }> {
  const outer = (await names(root)).filter(name => SHARD.test(name)).map(name => join(root, name))
  const inner: string[] = []
  for (const folder of outer)
    for (const name of await names(folder)) if (SHARD.test(name)) inner.push(join(folder, name))
  return { inner, outer }
}

/** The paths of every sealed body. */
async function bodies(root: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const folder of (await shards(root)).inner) {
    for (const name of await names(folder)) if (BODY.test(name)) found.push(join(folder, name))
  }
  return found
}

async function filesBelow(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true, withFileTypes: true })).filter(entry => !entry.isDirectory()).length
}

/** How many descriptors of this process lead below a folder; 0 where the system does not tell. */
export async function descriptorsBelow(folder: string): Promise<number> {
  if (!existsSync('/proc/self/fd')) return 0
  const targets = await Promise.all(
    // A descriptor may be closed between the listing and the look; then it leads nowhere.
    (await readdir('/proc/self/fd')).map(name => readlink(`/proc/self/fd/${name}`).catch(() => ''))
  )
  return targets.filter(target => target.startsWith(`${folder}/`)).length
}

async function linkOut(root: string): Promise<() => Promise<number>> {
  const outside = await mkdtemp(join(dirname(root), 'outside-'))
  const kept = await mkdtemp(join(dirname(root), 'kept-'))
  for (let shard = 0; shard < 256; shard += 1) {
    const name = shard.toString(16).padStart(2, '0')
    if (existsSync(join(root, name))) await rename(join(root, name), join(kept, name))
    await symlink(outside, join(root, name))
  }
  return () => filesBelow(outside)
}

/** Removes empty folders, innermost first. A folder that is not empty, or was removed by somebody else, is none of ours. */
async function removeEmpty(root: string): Promise<void> {
  const { inner, outer } = await shards(root)
  for (const folder of [...inner, ...outer]) {
    await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
    })
  }
}

async function damageFile(path: string, how: 'flip' | 'truncate' | 'empty' | 'remove' | 'directory'): Promise<void> {
  if (how === 'remove') return await unlink(path)
  if (how === 'directory') {
    await unlink(path)
    await mkdir(path)
    return
  }
  const bytes = await readFile(path)
  if (how !== 'flip') return await truncate(path, damagedBytes(bytes, how).length)
  const file = await open(path, 'r+')
  try {
    await file.write(damagedBytes(bytes, how))
  } finally {
    await file.close()
  }
}

/** The part of an oracle that looks at a folder of bodies. */
export function folderPart(root: string): OraclePart {
  return {
    async counts() {
      return { bodies: (await bodies(root)).length, stages: (await names(join(root, 'stage'))).length }
    },
    exists: async () => existsSync(root),
    async corrupt(key: BlobKey, how) {
      const path = (await bodies(root)).find(found => found.includes(`.${digestHexOf(key)}.`))
      if (path === undefined) return false
      await damageFile(path, how)
      return true
    },
    handles: () => descriptorsBelow(root),
    linkOut: () => linkOut(root),
    removeEmptyFolders: () => removeEmpty(root)
  }
}

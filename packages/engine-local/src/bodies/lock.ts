/**
 * An exclusive claim: one process at a time, free again when it died. Node.js has no `flock`, so holders form a chain of
 * files `lock.<n>`, and the holder is whoever made the HIGHEST generation.
 *
 *   1. Look at the highest generation n. Unless it is released (`lock.<n>.released` is there) or its holder is provably
 *      dead, the answer is "held". What cannot be proved (another host, another pid namespace) counts as held.
 *   2. Write a complete file under a temporary name and link it to `lock.<n+1>`. EEXIST: somebody was faster; back to 1.
 *   3. Look again. If a higher generation is there, we were slow: others have come and removed the files we had seen, which
 *      is how a low number could be free. Withdraw, back to 1. Otherwise we hold it, and remove those below the one before.
 *
 * A lock file is never changed, a release is a file beside it, and neither the highest nor the one before is ever removed:
 * a look that runs while the lock passes on sees one of the two.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { linkInto, makeMarker, writeWhole } from '../durable.js'
import { errno, type Files, openFile, unless } from '../files.js'
import { generationOf, lockName, releasedName, temporaryName } from '../layout.js'
import { type Holder, isDead, ourselves } from './holder.js'

export interface Lock {
  /** Lets the next one in. */
  release(): Promise<void>
}

/** Takes the lock, or answers `'held'` at once. */
export async function acquireLock(root: string, files: Files): Promise<Lock | 'held'> {
  const temporary = join(root, temporaryName())
  await writeWhole(files, temporary, `${JSON.stringify({ ...(await ourselves(files)), nonce: randomUUID() })}\n`)
  try {
    for (;;) {
      const before = await highest(root, files)
      if (before !== undefined && !(await isFree(root, files, before))) return 'held'
      const mine = (before ?? 0) + 1
      // A number that would not be read back as itself is none of ours; nobody can go on from there.
      if (generationOf(lockName(mine)) !== mine) return 'held'
      try {
        await linkInto(files, temporary, join(root, lockName(mine)))
      } catch (error) {
        if (errno(error) === 'EEXIST') continue
        throw error
      }
      if ((await highest(root, files)) === mine) {
        await removeOld(root, files, mine - 1)
        return { release: () => makeMarker(files, join(root, releasedName(mine))) }
      }
      // A holder above us may be removing the same file.
      await unless(files.unlink(join(root, lockName(mine))), 'ENOENT')
    }
  } finally {
    await files.unlink(temporary)
  }
}

async function highest(root: string, files: Files): Promise<number | undefined> {
  let found: number | undefined
  for (const name of await files.readdir(root)) {
    const generation = generationOf(name)
    if (generation !== undefined && generation > (found ?? 0)) found = generation
  }
  return found
}

async function isFree(root: string, files: Files, generation: number): Promise<boolean> {
  if ((await unless(files.lstat(join(root, releasedName(generation))), 'ENOENT')) !== undefined) return true
  const handle = await unless(openFile(files, join(root, lockName(generation))), 'ENOENT')
  // Only a lower generation is ever removed, so there is a higher one by now: the link will fail or be withdrawn.
  if (handle === undefined) return true
  let holder: unknown
  try {
    holder = JSON.parse(await handle.readFile('utf8'))
  } catch (error) {
    // Lock files are whole before they have their name. One that is not has been tampered with, and proves nothing.
    if (error instanceof SyntaxError) return false
    throw error
  } finally {
    await handle.close()
  }
  return typeof holder === 'object' && holder !== null && (await isDead(holder as Holder, files))
}

async function removeOld(root: string, files: Files, before: number): Promise<void> {
  for (const name of await files.readdir(root)) {
    const generation = generationOf(name.replace(/\.released$/, ''))
    if (generation !== undefined && generation < before) await unless(files.unlink(join(root, name)), 'ENOENT')
  }
}

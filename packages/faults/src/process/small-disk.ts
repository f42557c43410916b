/** A file system with so little room that it can be filled: a tmpfs, which only root may mount. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly folder: string
  /** Takes it away with everything on it. Idempotent. */
  release(): void
}

/** So many MiB; where none can be had, the reason. */
export function smallDisk(mebibytes: number): SmallDisk | { readonly unavailable: string } {
  const folder = mkdtempSync(join(tmpdir(), 'alkblobs-small-disk-'))
  try {
    const options = `size=${Math.ceil(mebibytes)}m,mode=0700`
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'pipe' })
  } catch (error) {
    rmdirSync(folder)
    return { unavailable: `no tmpfs can be mounted: ${(error as Error).message.trim()}` }
  }
  let isThere = true
  return {
    folder,
    release() {
      if (!isThere) return
      isThere = false
      execFileSync('umount', ['--lazy', folder], { stdio: 'pipe' })
      rmdirSync(folder)
    }
  }
}

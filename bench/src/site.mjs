/**
 * Where a run writes: one folder, all contestants beside each other on the same disk.
 *
 * Small files are not deleted, neither between rounds nor at the end of a run, but emptied: some disks make files ten times slower for
 * minutes after many were deleted, which would be charged to the peers that make many. What a run leaves goes a day later.
 */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync
} from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const PREFIX = 'run-'
const DAY_MS = 24 * 60 * 60 * 1000
const SMALL_LENGTH = 1024 * 1024
const DEFAULT = fileURLToPath(new URL('../.cache', import.meta.url))

/** Makes the folder of a run, below `dir`. */
export function makeSite({ dir }) {
  const parent = dir === undefined ? DEFAULT : resolve(dir)
  mkdirSync(parent, { recursive: true })
  const root = mkdtempSync(join(parent, PREFIX))
  return { ...siteAt(root, 'run'), root, clear: () => clear(parent, root) }
}

function clear(parent, root) {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    if (statSync(path).size > SMALL_LENGTH) unlinkSync(path)
    else truncateSync(path)
  }
  for (const name of readdirSync(parent).filter(each => each.startsWith(PREFIX))) {
    const run = join(parent, name)
    if (Date.now() - statSync(run).mtimeMs > DAY_MS) rmSync(run, { recursive: true, force: true })
  }
}

/** The part of a run's folder that is `owner`'s. */
export function siteAt(root, owner) {
  let folders = 0
  return {
    /** A new folder. */
    folder(name) {
      const folder = join(root, `${owner}-${++folders}-${name}`)
      mkdirSync(folder)
      return folder
    }
  }
}

/** How many small files the disk makes a second now: see above. */
export function conditionOf(site) {
  const folder = site.folder('condition')
  const count = 256
  const from = performance.now()
  for (let i = 0; i < count; i++) closeSync(openSync(join(folder, `${i}`), 'wx'))
  return { filesPerSecond: (count / (performance.now() - from)) * 1000 }
}

/** Waits until what was written without syncing is on the disk, so that the next contestant does not pay for it. */
export function settleDisk() {
  if (process.platform === 'win32') return
  execFileSync('sync')
}

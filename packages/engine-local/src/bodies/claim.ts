/**
 * Whose folder this is: `claimed`, `claim`, and the check that it still is (`confirm`).
 *
 * The claim is `alkblobs.json`: { "format": 1, "poolId": "…", "mode": "shared" | "exclusive" }. It is written whole under a
 * temporary name, made durable, and linked to its own name, so that of several claimers exactly one is first and nobody
 * ever reads half of one. It changes only when the folder is a copy that becomes a pool of its own (`reclaim`).
 */
import { join } from 'node:path'
import { type Claim, EngineFault, type PoolId } from '@alkblobs/core/engine'
import { linkInto, makeFolder, makeFolders, renameInto, writeWhole } from '../durable.js'
import { errno, type Files, openFile, unless } from '../files.js'
import { CLAIM_NAME, isTemporary, STAGE_FOLDER, temporaryName } from '../layout.js'
import type { Medium } from '../medium.js'
import { acquireLock } from './lock.js'

const FORMAT = 1
/** More than any claim of ours; a longer file is somebody else's. */
const CLAIM_LENGTH_MAX = 4_096
/** What may lie in a folder that still counts as empty: a new file system makes its own. */
const HARMLESS = new Set(['lost+found'])

/** The claim in force; `undefined` for a folder that is not there or holds nothing. Creates nothing. */
export async function claimed(medium: Medium): Promise<Claim | undefined> {
  const claim = await findClaim(medium)
  if (claim !== undefined) medium.poolId ??= claim.poolId
  return claim
}

async function findClaim({ root, files }: Medium): Promise<Claim | undefined> {
  const names = await unless(files.readdir(root), 'ENOENT')
  if (names === undefined) return undefined
  await checkOwner(root, files)
  if (names.includes(CLAIM_NAME)) return await readClaim(root, files)
  if (names.every(name => isTemporary(name) || HARMLESS.has(name))) return undefined
  // Somebody may have claimed it, and made more, while the folder was being listed.
  const claim = await unless(readClaim(root, files), 'ENOENT')
  if (claim === undefined)
    throw new EngineFault(
      'foreign',
      'the folder is not empty and holds no claim of alkblobs; give the large tier a folder of its own'
    )
  return claim
}

/** Claims the folder, unless somebody was first, and makes it ready. Answers the claim in force. */
export async function claim(medium: Medium, wanted: Claim): Promise<Claim> {
  const { root, files } = medium
  const found = await claimed(medium)
  if (found === undefined) {
    await makeFolders(files, root)
    await checkOwner(root, files)
    await writeClaim(root, files, wanted)
  }
  const inForce = found ?? (await readClaim(root, files))
  const stage = join(root, STAGE_FOLDER)
  const isOurs = inForce.poolId === wanted.poolId && inForce.mode === wanted.mode
  // Not made over and over: a pool on a read-only medium can be read.
  if (isOurs && (await unless(files.lstat(stage), 'ENOENT')) === undefined) await makeFolder(files, stage)
  return inForce
}

interface Reclaiming {
  readonly expected: PoolId
  readonly next: Claim
  /** Whether this store has the folder's lock already, for its exclusive claim. */
  readonly holdsLock: boolean
}

/** BODY-CLAIM-4. Others who would take the folder over are kept out by its lock, so that what was looked at is what is replaced. */
export async function reclaim(medium: Medium, { expected, next, holdsLock }: Reclaiming): Promise<boolean> {
  const { root, files } = medium
  const lock = holdsLock ? undefined : await acquireLock(root, files)
  if (lock === 'held') throw new EngineFault('conflict', 'another process holds the folder')
  try {
    if ((await readClaim(root, files)).poolId !== expected) return false
    const temporary = join(root, temporaryName())
    await writeWhole(files, temporary, claimText(next))
    await renameInto(files, temporary, join(root, CLAIM_NAME), [])
    medium.poolId = next.poolId
    return true
  } finally {
    await lock?.release()
  }
}

/**
 * Returns if absence can be believed now.
 * @throws EngineFault `transient` if the claim cannot be read or is another pool's.
 */
export async function confirm(medium: Medium): Promise<void> {
  let cause: unknown
  try {
    const { poolId } = await readClaim(medium.root, medium.files)
    // A store that opened before there was a claim believes the first one that it meets.
    medium.poolId ??= poolId
    if (poolId === medium.poolId) return
  } catch (error) {
    cause = error
  }
  throw new EngineFault('transient', 'the medium is away: its claim cannot be read or names another pool', cause)
}

function claimText({ poolId, mode }: Claim): string {
  return `${JSON.stringify({ format: FORMAT, poolId, mode })}\n`
}

async function writeClaim(root: string, files: Files, claim: Claim): Promise<void> {
  const temporary = join(root, temporaryName())
  await writeWhole(files, temporary, claimText(claim))
  try {
    await linkInto(files, temporary, join(root, CLAIM_NAME))
  } catch (error) {
    // Somebody else was first: theirs is in force.
    if (errno(error) !== 'EEXIST') throw error
  } finally {
    await files.unlink(temporary)
  }
}

async function readClaim(root: string, files: Files): Promise<Claim> {
  const handle = await openFile(files, join(root, CLAIM_NAME))
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(CLAIM_LENGTH_MAX + 1), 0, CLAIM_LENGTH_MAX + 1, 0)
    return parseClaim(buffer.toString('utf8', 0, bytesRead))
  } finally {
    await handle.close()
  }
}

function parseClaim(text: string): Claim {
  let value: unknown
  try {
    if (text.length <= CLAIM_LENGTH_MAX) value = JSON.parse(text)
  } catch {
    // What is no JSON is refused below, with everything else that is no claim.
  }
  if (typeof value === 'object' && value !== null && 'format' in value && Number.isSafeInteger(value.format)) {
    if ((value.format as number) > FORMAT) {
      throw new EngineFault('newer', `the folder has format ${value.format}, this version knows ${FORMAT}`)
    }
    const { format, poolId, mode } = value as Record<string, unknown>
    const modeIsKnown = mode === 'shared' || mode === 'exclusive'
    if (format === FORMAT && typeof poolId === 'string' && poolId !== '' && modeIsKnown) {
      return { poolId: poolId as PoolId, mode }
    }
  }
  throw new EngineFault(
    'corrupt',
    `${CLAIM_NAME} cannot be read as a claim; put it back from a backup, or remove the folder if it is not a pool's`
  )
}

/**
 * Refuses a folder in which others may put what they like. The superuser may do so everywhere, so a folder of theirs is as
 * good as our own; when we are the superuser, another user's folder is not.
 */
async function checkOwner(root: string, files: Files): Promise<void> {
  const { uid, mode } = await files.stat(root)
  const user = process.geteuid?.()
  // Windows has neither owners nor modes to go by.
  if (user === undefined) return
  if (uid !== user && uid !== 0) throw new EngineFault('denied', 'the folder belongs to another user')
  if ((mode & 0o002) !== 0) throw new EngineFault('denied', 'everybody may write to the folder')
}

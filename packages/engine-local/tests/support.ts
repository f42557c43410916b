// What the tests of this package share: temporary folders, calls without a deadline, bodies written in one go.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { BlobKey, BodyStore, Call, Claim, Engine, Locator, PoolId, StageId } from '@alkblobs/core/engine'
import { formatKey } from '@alkblobs/core/engine'
import { afterEach } from 'vitest'
import { checkConfig, type LocalConfig } from '../src/config.js'
import { type Files, nodeFiles } from '../src/files.js'
import { openFolder } from '../src/open.js'

export const call: Call = { deadlineMs: Number.POSITIVE_INFINITY }
export const within = (ms: number): Call => ({ deadlineMs: performance.now() + ms })
export const context = { algorithm: 'sha256', lockTimeoutMs: 5_000, connectTimeoutMs: 5_000 } as const
export const shared: Claim = { poolId: 'pool-1' as PoolId, mode: 'shared' }
export const exclusive: Claim = { poolId: 'pool-1' as PoolId, mode: 'exclusive' }

const leftovers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of leftovers.splice(0).reverse()) await end()
})
export const atEnd = (end: () => Promise<unknown>) => leftovers.push(end)

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'alkblobs-local-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export interface Opened {
  readonly engine: Engine
  readonly bodies: BodyStore
}

/** Opens a folder, over a file system that may be tampered with. */
export async function openRoot(
  root: string,
  files: Partial<Files> = {},
  config: Partial<LocalConfig> = {}
): Promise<Opened> {
  const engine = await openFolder(checkConfig({ root, ...config }), { ...nodeFiles, ...files }, context)
  return { engine, bodies: engine.bodies as BodyStore }
}

/** The same, claimed and closed at the end of the test. */
export async function claimedRoot(
  root: string,
  files: Partial<Files> = {},
  config: Partial<LocalConfig> = {}
): Promise<Opened> {
  const opened = await openRoot(root, files, config)
  await opened.bodies.claim(shared, call)
  atEnd(() => opened.engine.close())
  return opened
}

export const newStage = () => randomBytes(16).toString('hex') as StageId
export const keyOf = (bytes: Uint8Array): BlobKey => formatKey('sha256', createHash('sha256').update(bytes).digest())

/** Writes one body in the chunks given and seals it. */
export async function putBody(bodies: BodyStore, chunks: readonly Uint8Array[], stage = newStage()): Promise<Locator> {
  const bytes = Buffer.concat(chunks)
  const writer = await bodies.create(stage, { length: bytes.length }, call)
  try {
    for (const chunk of chunks) await writer.write(chunk)
    return await writer.seal(keyOf(bytes))
  } catch (error) {
    await writer.discard()
    throw error
  }
}

export async function readRange(bodies: BodyStore, locator: Locator, start = 0, end = 2 ** 40): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bodies.read(locator, { start, end }, call)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export const pathOf = (root: string, locator: string) => join(root, locator.slice(0, 2), locator.slice(2, 4), locator)

/** Every file below the folder, without the claim. */
export async function filesIn(root: string): Promise<string[]> {
  const all = await readdir(root, { recursive: true, withFileTypes: true })
  const paths = all
    .filter(entry => !entry.isDirectory())
    .map(entry => relative(root, join(entry.parentPath, entry.name)))
  return paths.filter(path => path !== 'alkblobs.json').sort()
}

export async function openDescriptors(): Promise<number> {
  return (await readdir('/proc/self/fd')).length
}

/** What the failure of a promise is called, or `undefined` if it does not fail. */
export async function failure(engine: Engine, promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise
    return undefined
  } catch (error) {
    return engine.classify(error)
  }
}

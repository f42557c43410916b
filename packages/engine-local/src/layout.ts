/**
 * Names under the root, written and read in this file alone.
 *
 *   alkblobs.json                                    the claim: whose folder this is
 *   stage/<stage id>                                 a body being written
 *   <s0s1>/<s2s3>/<stage id>.<digest>.<length>       a sealed body; s0..s3 are the first digits of the stage id
 *   lock.<n>, lock.<n>.released                      holders of an exclusive claim, see `bodies/lock.ts`
 *   .alkblobs.<random>                               something of these being made; what a crash leaves of it is harmless
 *
 * The shard comes from the stage id, not from the digest: whatever a stage ever made is found from the stage id alone. A
 * locator is the name of a sealed body. Names are parsed strictly: what does not parse is not ours, and is left alone.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import {
  type Algorithm,
  type BlobKey,
  digestHexOf,
  EngineFault,
  type Locator,
  parseKey,
  type StageId
} from '@alkblobs/core/engine'

export const CLAIM_NAME = 'alkblobs.json'
export const STAGE_FOLDER = 'stage'

const STAGE_ID = /^[0-9a-f]{32}$/
const BODY = /^([0-9a-f]{32})\.([0-9a-f]{64})\.(0|[1-9][0-9]{0,15})$/
const SHARD = /^[0-9a-f]{2}$/
const TEMPORARY = /^\.alkblobs\.[0-9a-f]{32}$/
const LOCK = /^lock\.([1-9][0-9]{0,14})$/

/** A sealed body, as its name tells it. */
export interface BodyName {
  readonly locator: Locator
  readonly stage: StageId
  readonly key: BlobKey
  /** The length it was sealed with, in bytes. */
  readonly length: number
}

export function isStageId(name: string): name is StageId {
  return STAGE_ID.test(name)
}

export function isShard(name: string): boolean {
  return SHARD.test(name)
}

/** What a claim or a lock that was never finished leaves behind. */
export function isTemporary(name: string): boolean {
  return TEMPORARY.test(name)
}

export function temporaryName(): string {
  return `.alkblobs.${randomBytes(16).toString('hex')}`
}

export function bodyNameOf(stage: StageId, key: BlobKey, length: number): BodyName {
  return { locator: `${stage}.${digestHexOf(key)}.${length}` as Locator, stage, key, length }
}

/** Reads the name of a sealed body; `undefined` for anything else. */
export function parseBodyName(name: string, algorithm: Algorithm): BodyName | undefined {
  const [, stage, digest, length] = BODY.exec(name) ?? []
  if (stage === undefined || !Number.isSafeInteger(Number(length))) return undefined
  const key = parseKey(`${algorithm}:${digest}`, algorithm)
  return { locator: name as Locator, stage: stage as StageId, key, length: Number(length) }
}

/** @throws EngineFault `corrupt` for what this engine never answered: it must not become a path. */
export function parseLocator(locator: string, algorithm: Algorithm): BodyName {
  const name = parseBodyName(locator, algorithm)
  if (name === undefined) throw new EngineFault('corrupt', 'the locator is none that this engine makes')
  return name
}

/** @throws EngineFault `corrupt` for what is no stage id: it must not become a path. */
export function parseStageId(stage: string): StageId {
  if (!isStageId(stage)) throw new EngineFault('corrupt', 'the stage id is malformed')
  return stage
}

export function halfPath(root: string, stage: StageId): string {
  return join(root, STAGE_FOLDER, stage)
}

/** The two folders on the way to a stage's sealed body, outer one first. */
export function shardFolders(root: string, stage: string): readonly [outer: string, inner: string] {
  const outer = join(root, stage.slice(0, 2))
  return [outer, join(outer, stage.slice(2, 4))]
}

export function bodyPath(root: string, { stage, locator }: Pick<BodyName, 'stage' | 'locator'>): string {
  return join(shardFolders(root, stage)[1], locator)
}

export function lockName(generation: number): string {
  return `lock.${generation}`
}

export function releasedName(generation: number): string {
  return `lock.${generation}.released`
}

/** The generation of a lock file; `undefined` for any other name, the marker of a release among them. */
export function generationOf(name: string): number | undefined {
  const generation = LOCK.exec(name)?.[1]
  return generation === undefined ? undefined : Number(generation)
}

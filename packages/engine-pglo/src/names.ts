/**
 * Names, written and read in this file alone.
 *
 *   lo.<stage id>    the locator of a sealed body; its row in `lo_entries` has the object's oid, key and length
 *
 * An oid is no name: the server uses the numbers of removed objects again. It stays inside the row, and every statement that
 * needs one looks it up by the stage id itself.
 *
 * Advisory locks are shared by everybody in the database, so ours are 64-bit hashes of names that begin like no one else's.
 */
import { createHash } from 'node:crypto'
import { EngineFault, type Locator, type StageId } from '@alkblobs/core/engine'

const STAGE_ID = /^[0-9a-f]{32}$/
const PREFIX = 'lo.'

export function isStageId(name: string): name is StageId {
  return STAGE_ID.test(name)
}

export function locatorOf(stage: StageId): Locator {
  return `${PREFIX}${stage}` as Locator
}

/** The stage behind a locator or stage id; `undefined` for what this engine never made. */
export function stageOf(what: string): StageId | undefined {
  const stage = what.startsWith(PREFIX) ? what.slice(PREFIX.length) : what
  return isStageId(stage) ? stage : undefined
}

/** @throws EngineFault `corrupt` for a locator that this engine never answered. */
export function parseLocator(locator: string): StageId {
  const stage = locator.startsWith(PREFIX) ? stageOf(locator) : undefined
  if (stage === undefined) throw new EngineFault('corrupt', 'the locator is none that this engine makes')
  return stage
}

/** @throws EngineFault `corrupt` for what is no stage id. */
export function parseStageId(stage: string): StageId {
  if (!isStageId(stage)) throw new EngineFault('corrupt', 'the stage id is malformed')
  return stage
}

/** Held by whoever makes or removes what a stage made, for as long as its transaction lasts. */
export function stageLock(schema: string, stage: StageId): string {
  return lockKey('stage', schema, stage)
}

/** Held by whoever makes the schema, for as long as its transaction lasts. */
export function schemaLock(schema: string): string {
  return lockKey('schema', schema, '')
}

/** Held by the session of an exclusive claim. */
export function claimLock(schema: string): string {
  return lockKey('claim', schema, '')
}

function lockKey(kind: string, schema: string, name: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(['alkblobs pglo', kind, schema, name]))
    .digest()
  return hash.readBigInt64BE().toString()
}

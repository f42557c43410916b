/**
 * Everything this engine ever made and still holds: `scan`.
 *
 * Half files first, then shard by shard, each folder in the order of its names: a stable order, since both parts are
 * ordered by stage id. The cursor is the last name answered, `stage/<stage id>` or a locator. One folder at a time is in
 * memory. Names that do not parse, links and folders in the place of files are not ours and are passed over.
 */
import { join } from 'node:path'
import type { Call, Found, ScanPage } from '@alkblobs/core/engine'
import { unless } from '../files.js'
import { type BodyName, bodyPath, halfPath, isShard, isStageId, parseBodyName, STAGE_FOLDER } from '../layout.js'
import { checkCall, type Medium } from '../medium.js'
import { confirm } from './claim.js'

const HALF = `${STAGE_FOLDER}/`

export async function scan(medium: Medium, after: string | undefined, limit: number, call: Call): Promise<ScanPage> {
  // An empty answer from a folder that is not the medium would pass for an empty medium.
  await confirm(medium)
  const found: Found[] = []
  let last: string | undefined
  for await (const { cursor, look } of walk(medium, after, call)) {
    const body = await look()
    if (body === undefined) continue
    found.push(body)
    last = cursor
    if (found.length === limit) return { found, next: last }
  }
  await confirm(medium)
  return { found, next: undefined }
}

interface Step {
  readonly cursor: string
  /** What lies there; `undefined` if it went away or is not ours. */
  look(): Promise<Found | undefined>
}

async function* walk(medium: Medium, after: string | undefined, call: Call): AsyncGenerator<Step> {
  const { algorithm, root } = medium
  const afterBody = after?.startsWith(HALF) ? undefined : after
  if (afterBody === undefined) {
    for (const stage of await names(medium, join(root, STAGE_FOLDER), call)) {
      const cursor = HALF + stage
      if (isStageId(stage) && (after === undefined || cursor > after)) {
        yield { cursor, look: () => lookAt(medium, halfPath(root, stage), () => ({ stage })) }
      }
    }
  }
  const from = afterBody ?? ''
  for (const outer of await names(medium, root, call)) {
    if (!isShard(outer) || outer < from.slice(0, 2)) continue
    for (const inner of await names(medium, join(root, outer), call)) {
      if (!isShard(inner) || outer + inner < from.slice(0, 4)) continue
      for (const name of await names(medium, join(root, outer, inner), call)) {
        const body = parseBodyName(name, algorithm)
        if (body === undefined || name <= from || !name.startsWith(outer + inner)) continue
        yield { cursor: name, look: () => lookAt(medium, bodyPath(root, body), size => sealed(body, size)) }
      }
    }
  }
}

function sealed({ stage, locator, key, length }: BodyName, size: number): Found {
  // What the name promises is `whole`'s business; `length` is what the medium holds.
  return { stage, sealed: { locator, key, length: size, whole: size === length } }
}

async function lookAt(medium: Medium, path: string, found: (size: number) => Found): Promise<Found | undefined> {
  const stats = await unless(medium.files.lstat(path), 'ENOENT')
  return stats?.isFile() ? found(stats.size) : undefined
}

/** The names in a folder, in order; none if it went away or is no folder: a link leads out of what is ours. */
async function names({ files, root }: Medium, folder: string, call: Call): Promise<string[]> {
  checkCall(call)
  const isOurs = folder === root || (await unless(files.lstat(folder), 'ENOENT'))?.isDirectory()
  return isOurs ? ((await unless(files.readdir(folder), 'ENOENT')) ?? []).sort() : []
}

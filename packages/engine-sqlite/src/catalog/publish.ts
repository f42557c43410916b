/** Makes entries, finds them, heals them: `publish`. */
import {
  type Catalog,
  digestOf,
  type Entry,
  type Place,
  type Publication,
  type PublishedBytes,
  type PublishOutcome
} from '@alkblobs/core/engine'
import { noPool } from '../group-commit.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import { findRow, isSamePlace, type Row } from './entries.js'
import { checkStamp } from './meta.js'
import { protect } from './pins.js'
import { endStage, isStaged } from './stages.js'
import { endBytes } from './trash.js'

const CREATE = 'INSERT INTO entries (key, length, id, locator) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING'
const POINT = 'UPDATE entries SET length = ?, id = ?, locator = ? WHERE key = ?'
const WRITE_BODY = 'INSERT INTO bodies (id, body) VALUES (?, ?)'

type Bytes = Exclude<PublishedBytes, { kind: 'none' }>

export function publishOf(pool: Pool): Pick<Catalog, 'publish'> {
  return {
    // One job, all or nothing: an error cannot be told of a single item, so none may be kept when one fails.
    publish: (items, call) =>
      pool.write(call, {
        absent: noPool,
        bytes: items.reduce((sum, { bytes }) => sum + (bytes.kind === 'inline' ? bytes.body.byteLength : 0), 0),
        run: transaction => {
          checkStamp(transaction)
          return items.map(item => publishOne(transaction, item))
        }
      })
  }
}

function publishOne(transaction: Transaction, item: Publication): PublishOutcome {
  const { key, bytes, healing } = item
  if (bytes.kind === 'staged' && !isStaged(transaction, bytes.stage)) return { outcome: 'stage-lost' }
  const digest = digestOf(key)
  // Made before it is looked for: most content is new.
  if (bytes.kind !== 'none' && isCreated(transaction, item, bytes, digest)) {
    protect(transaction, digest, item.pin)
    return { outcome: 'created', entry: entryOf(item, bytes) }
  }
  const found = findRow(transaction.at, key, digest)
  if (found === undefined) return { outcome: 'absent' }
  if (bytes.kind !== 'none' && healing !== undefined && isSamePlace(found.entry.place, healing)) {
    return heal(transaction, item, bytes, digest, found)
  }
  protect(transaction, digest, item.pin)
  return { outcome: 'existed', entry: found.entry }
}

/** Makes the entry with its bytes, unless the key has one. */
function isCreated(transaction: Transaction, { length }: Publication, bytes: Bytes, digest: Uint8Array): boolean {
  const made = transaction.at.run(CREATE, digest, length, ...placeOf(transaction, bytes)) === 1
  if (made) place(transaction, bytes)
  return made
}

function heal(
  transaction: Transaction,
  item: Publication,
  bytes: Bytes,
  digest: Uint8Array,
  found: Row
): PublishOutcome {
  endBytes(transaction, found, digest, item.trashDelayMs)
  transaction.at.run(POINT, item.length, ...placeOf(transaction, bytes), digest)
  place(transaction, bytes)
  protect(transaction, digest, item.pin)
  return { outcome: 'healed', entry: entryOf(item, bytes) }
}

/** What the entry says of its bytes. */
function placeOf(transaction: Transaction, bytes: Bytes): [body: number | null, locator: string | null] {
  return bytes.kind === 'inline' ? [transaction.nextBody, null] : [null, bytes.locator]
}

/** Writes an inline body, or ends the stage of another one. */
function place(transaction: Transaction, bytes: Bytes): void {
  if (bytes.kind === 'staged') {
    endStage(transaction.at, bytes.stage)
  } else {
    transaction.at.run(WRITE_BODY, transaction.nextBody, bytes.body)
    transaction.bodyMade()
  }
}

function entryOf({ key, length }: Publication, bytes: Bytes): Entry {
  const place: Place =
    bytes.kind === 'staged' ? { tier: 'large', locator: bytes.locator } : { tier: 'kv', length: bytes.body.byteLength }
  return { key, length, place }
}

/** Records and claims that somebody has changed, on the media that lie in files. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { memoryFolder } from '../src/index.js'
import { expectWhole, makePool, useAll } from './records.js'

interface Database {
  prepare(sql: string): { run(...values: unknown[]): unknown; get(): unknown }
  close(): void
}
const engine = createRequire(import.meta.url).resolve('@alkblobs/engine-sqlite/package.json')
const Driver = createRequire(engine)('better-sqlite3') as new (file: string) => Database

function mediaIn(folder: string) {
  return { kv: sqlite({ file: join(folder, 'pool.db') }), large: local({ root: join(folder, 'large') }) }
}

function folderOfTest(): string {
  const folder = mkdtempSync(join(memoryFolder(), 'alkblobs-records-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function onDatabase<T>(folder: string, act: (database: Database) => T): T {
  const database = new Driver(join(folder, 'pool.db'))
  try {
    return act(database)
  } finally {
    database.close()
  }
}

const texts = fc.oneof(
  fc.constantFrom('', 'sha256', 'blake3', '0', ' ', 'x'.repeat(5_000)),
  fc.string({ maxLength: 40 })
)
const numbers = fc.oneof(
  fc.constantFrom(null, -1, 0, 1, 2, 2 ** 31, 2 ** 53, -(2 ** 53)),
  fc.integer({ min: -1_000_000, max: 2 ** 40 })
)

/** Columns of the record, and what each may be changed to: the layout keeps other types out. */
const columns = {
  pool_id: fc.oneof(fc.constant(null), texts),
  protocol: numbers,
  algorithm: fc.oneof(fc.constant(null), texts),
  window_delay_ms: numbers,
  bodies_claimed: numbers,
  lease: fc.integer({ min: -5, max: 2 ** 40 })
}

/** One or two at a time: of a record that is wrong throughout only the first look is tried. */
const changes = fc
  .subarray(Object.keys(columns) as (keyof typeof columns)[], { minLength: 1, maxLength: 2 })
  .chain(names => fc.record(Object.fromEntries(names.map(name => [name, columns[name]]))))

test('a record of sqlite that was changed is a value or a typed error, and nothing live is lost', async () => {
  const folder = folderOfTest()
  const media = mediaIn(folder)
  const pool = await makePool(media)
  const before = onDatabase(folder, database => database.prepare('SELECT * FROM meta').get()) as Record<string, unknown>
  const write = (values: Record<string, unknown>) =>
    onDatabase(folder, database => {
      const names = Object.keys(values)
      if (names.length === 0) return
      const sets = names.map(name => `${name} = ?`).join(', ')
      database.prepare(`UPDATE meta SET ${sets}`).run(...names.map(name => values[name]))
    })
  let opened = 0
  await fc.assert(
    fc.asyncProperty(changes, async change => {
      write(change)
      if (await useAll(media, pool)) opened++
      write(before)
      await expectWhole(media, pool)
    }),
    { numRuns: 60 }
  )
  // Both ends are tried: records that are refused, and records that can be worked with.
  expect(opened).toBeGreaterThan(0)
}, 60_000)

const claims = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map(bytes => Buffer.from(bytes)),
  fc.json().map(text => Buffer.from(text)),
  fc
    .record(
      {
        format: fc.oneof(fc.constantFrom<unknown>(1, 2, 0, '1', null), fc.double()),
        poolId: fc.oneof(fc.constantFrom<unknown>('', 7, null), fc.string()),
        mode: fc.constantFrom<unknown>('shared', 'exclusive', '', 1)
      },
      { requiredKeys: [] }
    )
    .map(claim => Buffer.from(JSON.stringify(claim)))
)

test('a claim of local that was changed is a value or a typed error, and nothing live is lost', async () => {
  const folder = folderOfTest()
  const media = mediaIn(folder)
  const pool = await makePool(media)
  const file = join(folder, 'large', 'alkblobs.json')
  const before = readFileSync(file)
  await fc.assert(
    fc.asyncProperty(claims, async claim => {
      writeFileSync(file, claim)
      await useAll(media, pool)
      writeFileSync(file, before)
      await expectWhole(media, pool)
    }),
    { numRuns: 60 }
  )
}, 60_000)

// Writers and sweepers killed inside of calls of the contract, at calls of the media.
import '@alkblobs/faults/vitest'
import { noServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { killInside } from './inside.js'
import { LIMIT_MS } from './kills.js'

const reason = noServer()

/** Every one of these was died before. */
function expectAll(struck: readonly string[], calls: readonly RegExp[]): void {
  for (const call of calls) expect(struck).toContainEqual(expect.stringMatching(call))
}

describe('a process that is killed inside of a call', () => {
  it('at any call of files or SQLite loses nothing acknowledged and leaves nothing', {
    timeout: LIMIT_MS
  }, async () => {
    const struck = await killInside('sqlite + local')
    // A body of several windows dies between any two of them.
    expect(struck.filter(call => call.startsWith('write large/stage')).length).toBeGreaterThan(3)
    expectAll(struck, [
      // A body: made, written, made durable, moved to its name, its name made durable; and unlinked.
      /^create large\/stage/,
      /^write large\/stage/,
      /^datasync large\/stage/,
      /^rename /,
      /^sync large\/#\/#/,
      /^unlink #\/#\/#/,
      // Transactions: of a stage, of a publication, of a removal, of the end of trash.
      /^sqlite INSERT INTO stages/,
      /^sqlite INSERT INTO entries/,
      /^sqlite DELETE FROM stages/,
      /^sqlite INSERT INTO gc_pins/,
      /^sqlite DELETE FROM entries/,
      /^sqlite INSERT INTO trash/,
      /^sqlite DELETE FROM trash/,
      /^sqlite COMMIT/
    ])
    expect(struck.length).toBeGreaterThan(30)
  })
})

describe.skipIf(reason !== undefined)(`a process on a server${reason === undefined ? '' : ` (${reason})`}`, () => {
  it('that is killed before any message that changes something loses nothing acknowledged and leaves nothing', {
    timeout: LIMIT_MS
  }, async () => {
    const struck = await killInside('postgres + pglo')
    expectAll(struck, [
      /^server INSERT INTO "alkblobs_test_pool".stages/,
      /^server WITH \S+ AS \( INSERT INTO "alkblobs_test_pool".entries/,
      /^server DELETE FROM "alkblobs_test_pool".stages/,
      /^server INSERT INTO "alkblobs_test_pool".gc_pins/,
      /^server INSERT INTO "alkblobs_test_pool".gc_window/,
      /^server WITH gone AS \(DELETE FROM "alkblobs_pglo"."lo_entries"/,
      /^server COMMIT/
    ])
    expect(struck.length).toBeGreaterThan(15)
  })
})

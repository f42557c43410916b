/** A sweep over many entries, all of them live by the word of a source that enumerates them. */
import { closeSync, openSync, writeSync } from 'node:fs'
import Database from 'better-sqlite3'
import { inChild } from '../child.mjs'
import { fillPool } from '../peers/pool.mjs'

const POOL = import.meta.resolve('../children/sweep-of-pool.mjs')
const BY_HAND = import.meta.resolve('../children/sweep-by-hand.mjs')
const LENGTH = 16

const written = count => count.toLocaleString('en')

export const sweepScale = {
  id: 'sweep-scale',
  unit: 'us/entry',
  titleOf: ({ scale }) => `${scale.sweepEntries.map(written).join(' and ')} entries, all of them live`,
  warmUp: false,
  roundsOf: ({ scale }) => Math.min(3, scale.rounds),
  async contestants({ site, scale }) {
    const filled = []
    for (const entries of scale.sweepEntries) filled.push(await fill(site, entries))
    return filled.flatMap(({ entries, ...at }) => [
      {
        id: `alkblobs${entries}`,
        name: `alkblobs, ${written(entries)}`,
        note: 'pins, window, lease and trash as well',
        run: () => inChild(POOL, { ...at, entries })
      },
      {
        id: `hand${entries}`,
        name: `by hand, ${written(entries)}`,
        note: 'keys against keys: no pins, no window, no lease, blocks',
        run: () => inChild(BY_HAND, { ...at, entries })
      }
    ])
  },
  ratiosOf: ({ scale: { sweepEntries } }) => [...sweepEntries.flatMap(ratiosAt), ...growth(sweepEntries)]
}

function ratiosAt(entries) {
  return [
    {
      id: `sweep-scale/${entries}`,
      value: round => round[`alkblobs${entries}`].figure / round[`hand${entries}`].figure,
      atMost: 1.5,
      against: 'time of the best look by hand'
    },
    {
      id: `sweep-scale/${entries}/memory`,
      value: round => round[`alkblobs${entries}`].peakMiB,
      atMost: 100,
      unit: 'MiB',
      against: 'resident set over idle'
    }
  ]
}

function growth(sweepEntries) {
  if (sweepEntries.length < 2) return []
  const [few, many] = sweepEntries
  return [
    {
      id: 'sweep-scale/growth',
      value: round => round[`alkblobs${many}`].figure / round[`alkblobs${few}`].figure,
      atMost: 1.3,
      against: `time an entry, ${written(many)} against ${written(few)}`
    }
  ]
}

/** A pool of so many tiny blobs, put as a user would; a database of their keys alone; and a file of their digests. */
async function fill(site, entries) {
  const folder = site.folder('pool')
  const other = site.folder('by-hand')
  const [file, keys] = [`${other}/keys.db`, `${other}/keys`]
  const db = new Database(file)
  db.pragma('page_size = 16384')
  db.pragma('journal_mode = WAL')
  db.exec('CREATE TABLE entries (key BLOB PRIMARY KEY, length INTEGER NOT NULL) WITHOUT ROWID')
  const insert = db.prepare('INSERT INTO entries VALUES (?, ?)')
  const descriptor = openSync(keys, 'w')
  db.exec('BEGIN')
  const onDigest = digest => {
    insert.run(digest, LENGTH)
    writeSync(descriptor, digest)
  }
  await fillPool(folder, { entries, length: LENGTH, onDigest })
  db.exec('COMMIT')
  db.close()
  closeSync(descriptor)
  return { entries, folder, file, keys }
}

/** What a process pays before its first blob is stored. */
import { inChild } from '../child.mjs'

const POOL = import.meta.resolve('../children/open-pool.mjs')
const BARE = import.meta.resolve('../children/open-bare.mjs')

export const open = {
  id: 'open',
  unit: 'ms',
  titleOf: () => 'a new process: import, open, make the pool, first durable put',
  warmUp: false,
  roundsOf: ({ scale }) => scale.openRounds,
  async contestants({ site }) {
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs sqlite + local',
        note: 'from the start of the process',
        run: () => inChild(POOL, { folder: site.folder('pool') })
      },
      {
        id: 'bare',
        name: 'node and better-sqlite3, imported',
        note: 'opens and stores nothing',
        run: () => inChild(BARE, {})
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'open',
      value: round => round.alkblobs.figure - round.bare.figure,
      atMost: 60,
      unit: 'ms',
      against: 'over a process that imports better-sqlite3'
    }
  ]
}

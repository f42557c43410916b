/** Two sequences on one instance, three instances, other sources, healing, a pool that is yet to be made; and three operations each. */
import { forget, maintain, put, remove, renew, repair, sweep, vanish } from '../operations.js'
import { created, empty, handover, inline, type Listed, large, MINUTE_MS, one, refers, streamed } from './listed.js'

export const SHARED: readonly Listed[] = [
  one(
    'one instance, inline: put | put and keep || delete',
    [
      ['A', put('K1')],
      ['A', put('K1', { keeps: true })],
      ['B', remove('K1')]
    ],
    { ...inline, ...empty }
  ),
  one(
    'one instance: put | put and keep || delete',
    [
      ['A', put('K1')],
      ['A', put('K1', { keeps: true })],
      ['B', remove('K1')]
    ],
    empty
  ),
  one(
    'one instance: put, put and keep | renewal || delete',
    [
      ['A', put('K1'), put('K1', { keeps: true })],
      ['A', renew()],
      ['B', remove('K1')]
    ],
    empty
  ),
  one('one instance: put and refer | its own sweep', [
    ['A', put('K1', refers)],
    ['A', sweep()]
  ]),
  one('one instance: put and refer | its own delete', [
    ['A', put('K1', refers)],
    ['A', remove('K1')]
  ]),
  one(
    'one instance, inline: hand over | its own sweep',
    [
      ['A', handover],
      ['A', sweep()]
    ],
    inline
  ),
  one(
    'one instance, inline: put and refer | its own delete',
    [
      ['A', put('K1', refers)],
      ['A', remove('K1')]
    ],
    inline
  )
]

export const OTHERS: readonly Listed[] = [
  one(
    'large put | maintain',
    [
      ['A', streamed],
      ['B', maintain()]
    ],
    { ...large, ...empty }
  ),
  one(
    'hand over | delete',
    [
      ['A', handover],
      ['B', remove('K1')]
    ],
    created
  ),
  one(
    'hand over | sweep, sweep, with a source that enumerates',
    [
      ['A', handover],
      ['B', sweep(), sweep()]
    ],
    created
  ),
  one(
    'three instances: hand over | sweep | sweep',
    [
      ['A', sweep()],
      ['B', sweep()],
      ['C', handover]
    ],
    created
  ),
  one(
    'three instances, inline: hand over | sweep | delete',
    [
      ['A', sweep()],
      ['B', remove('K1')],
      ['C', handover]
    ],
    inline
  ),
  one(
    'three instances: put | put and keep | delete',
    [
      ['A', put('K1')],
      ['B', put('K1', { keeps: true })],
      ['C', remove('K1')]
    ],
    empty
  ),
  one(
    'hand over | sweep, sweep, with a source that answers',
    [
      ['A', handover],
      ['B', sweep(), sweep()]
    ],
    { ...created, source: 'answering' }
  ),
  one(
    'put that heals, without a pin | repair',
    [
      ['A', put('K1', { unpinned: true })],
      ['B', repair()]
    ],
    { before: [put('K1'), vanish()], ...large, windowDelayMs: 5 * MINUTE_MS }
  ),
  one(
    'put that heals | repair, sweep',
    [
      ['A', put('K1', refers)],
      ['B', repair(), sweep()]
    ],
    { before: [put('K1'), vanish()], ...large, isLong: true }
  ),
  one(
    'put that heals | put that heals',
    [
      ['A', put('K1', refers)],
      ['B', put('K1', refers)]
    ],
    { before: [put('K1'), vanish()], ...large, isLong: true }
  ),
  one(
    'large put, large put | maintain',
    [
      ['A', streamed],
      ['B', streamed, maintain()]
    ],
    { ...large, ...empty }
  ),
  one(
    'virgin: put and refer | put',
    [
      ['A', put('K1', refers)],
      ['B', put('K1')]
    ],
    { before: [], isVirgin: true }
  ),
  one(
    'virgin: large put | large put',
    [
      ['A', put('K1', refers)],
      ['B', put('K1')]
    ],
    { before: [], isVirgin: true, ...large, isLong: true }
  ),
  one(
    'virgin: put and refer | sweep',
    [
      ['A', put('K1', refers)],
      ['B', sweep()]
    ],
    { before: [], isVirgin: true }
  )
]

/** Three operations each: with ALKBLOBS_LONG=1. */
export const THREE: readonly Listed[] = [
  one(
    'three operations: put, hand over, put | sweep, sweep, sweep',
    [
      ['A', put('K1'), handover, put('K2')],
      ['B', sweep(), sweep(), sweep()]
    ],
    { isLong: true }
  ),
  one(
    'three operations: put and refer, forget, put and refer | sweep, sweep, delete',
    [
      ['A', put('K1', refers), forget('K1'), put('K1', refers)],
      ['B', sweep(), sweep(), remove('K1')]
    ],
    { isLong: true }
  ),
  one(
    'three operations, inline: hand over, forget, hand over | sweep, delete, sweep',
    [
      ['A', handover, forget('K1'), handover],
      ['B', sweep(), remove('K1'), sweep()]
    ],
    { ...inline, isLong: true }
  )
]

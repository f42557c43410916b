/** What comes from outside: a crash, a pause, a deadline, a lease that is lost. */
import { maintain, put, remove, renew, repair, sweep } from '../operations.js'
import {
  crashOf,
  created,
  empty,
  handover,
  type Listed,
  large,
  lost,
  MINUTE_MS,
  missed,
  one,
  pause,
  refers,
  streamed,
  under
} from './listed.js'

export const EVENTS: readonly Listed[] = [
  one(
    'bodies vanish | put and refer | repair',
    [
      ['A', put('K1', refers)],
      ['B', repair()]
    ],
    { ...under({ kind: 'bodies vanish' }), ...large, ...created, isLong: true }
  ),
  one(
    'crash of a large put, time passes | maintain without a scan',
    [
      ['A', streamed],
      ['B', maintain(false)]
    ],
    { ...under(crashOf('A'), pause), ...large, ...empty, isLong: true }
  ),
  one(
    'large put, time passes | maintain',
    [
      ['A', streamed],
      ['B', maintain(false)]
    ],
    { ...under(pause), ...large, ...empty }
  ),
  one(
    'crash of a large put | maintain',
    [
      ['A', streamed],
      ['B', maintain()]
    ],
    { ...under(crashOf('A')), ...large, ...empty }
  ),
  one(
    'crash of a large put, time passes | maintain',
    [
      ['A', streamed],
      ['B', maintain()]
    ],
    { ...under(crashOf('A'), pause), ...large, ...empty, isLong: true }
  ),
  one(
    'crash of a sweep | put and refer',
    [
      ['A', sweep()],
      ['B', put('K1', refers)]
    ],
    under(crashOf('A'))
  ),
  one(
    'crash of a large sweep | put and refer',
    [
      ['A', sweep()],
      ['B', put('K1', refers)]
    ],
    { ...under(crashOf('A')), ...large }
  ),
  one(
    'crash of a delete | put and refer, sweep',
    [
      ['A', remove('K1')],
      ['B', put('K1', refers), sweep()]
    ],
    under(crashOf('A'))
  ),
  one(
    'crash of a put and refer | sweep, sweep',
    [
      ['A', put('K1', refers)],
      ['B', sweep(), sweep()]
    ],
    under(crashOf('A'))
  ),
  one(
    'crash of a put | put and keep, delete',
    [
      ['A', put('K1')],
      ['B', put('K1', { keeps: true }), remove('K1')]
    ],
    { ...under(crashOf('A')), ...empty }
  ),
  one(
    'hand over, time passes | sweep, sweep',
    [
      ['A', handover],
      ['B', sweep(), sweep()]
    ],
    { ...under(pause), ...created }
  ),
  one(
    'hand over with a renewal, time passes | delete',
    [
      ['A', handover],
      ['A', renew()],
      ['B', remove('K1')]
    ],
    { ...under(pause), ...created }
  ),
  one(
    'large put, time passes | maintain, sweep',
    [
      ['A', streamed],
      ['B', maintain(), sweep()]
    ],
    { ...under(pause), ...large, ...empty, isLong: true }
  ),
  one(
    'put without a pin, time passes | sweep, sweep',
    [
      ['A', put('K1', { unpinned: true })],
      ['B', sweep(), sweep()]
    ],
    { ...under(pause), ...created, windowDelayMs: 5 * MINUTE_MS }
  ),
  one(
    'delete, a day passes | maintain, put and refer',
    [
      ['A', remove('K1')],
      ['B', maintain(false), put('K1', refers)]
    ],
    { ...under({ kind: 'pause', ms: 25 * 60 * MINUTE_MS }), ...created }
  ),
  one(
    'deadline of a put | sweep',
    [
      ['A', put('K1', refers)],
      ['B', sweep()]
    ],
    under(missed)
  ),
  one(
    'deadline of a large put | delete',
    [
      ['A', streamed],
      ['B', remove('K1')]
    ],
    { ...under(missed), ...large, ...empty }
  ),
  one(
    'deadline of a sweep | put and refer',
    [
      ['A', sweep()],
      ['B', put('K1', refers)]
    ],
    under(missed)
  ),
  one(
    'hand over | two sweeps, a lease lost',
    [
      ['A', sweep()],
      ['B', sweep()],
      ['C', handover]
    ],
    { ...under(lost), ...created }
  )
]

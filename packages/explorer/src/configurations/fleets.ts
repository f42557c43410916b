/** Instances of a fleet: what has expired by the server's clock stays expired, and every owner's row counts. */
import { type Event, LAPSE_MS } from '../configuration.js'
import { maintain, pin, put, remove, renew, sweep } from '../operations.js'
import {
  crashOf,
  created,
  empty,
  handover,
  type Listed,
  large,
  lost,
  missed,
  one,
  type Plan,
  pause,
  refers,
  streamed,
  under
} from './listed.js'

const lapse: Event = { kind: 'pause', ms: LAPSE_MS }
const kept = put('K1', { keeps: true })

function fleet(name: string, plans: readonly Plan[], more: Partial<Listed> = {}): Listed {
  return one(`fleet: ${name}`, plans, { fleet: true, ...more })
}

export const FLEETS: readonly Listed[] = [
  fleet('put and keep | put and keep | delete', [
    ['A', kept],
    ['B', kept],
    ['C', remove('K1')]
  ]),
  fleet('put and refer, put | sweep, sweep', [
    ['A', put('K1', refers), put('K2')],
    ['B', sweep(), sweep()]
  ]),
  fleet(
    'put and keep, time passes | sweep, sweep',
    [
      ['A', kept],
      ['B', sweep(), sweep()]
    ],
    { ...under(pause), ...created }
  ),
  fleet(
    'put and keep | renewal, time passes twice || delete',
    [
      ['A', kept],
      ['A', renew()],
      ['B', remove('K1')]
    ],
    { ...under(lapse, lapse), ...empty }
  ),
  fleet(
    'pin and keep, renewal, time passes | sweep of what is staged',
    [
      ['A', pin('K1', { keeps: true }), renew()],
      ['B', sweep()]
    ],
    under(pause)
  ),
  fleet(
    'pin, put and keep | renewal, time passes || delete',
    [
      ['A', pin('K1'), kept],
      ['A', renew()],
      ['B', remove('K1')]
    ],
    { ...under(pause), ...created, isLong: true }
  ),
  fleet(
    'put and keep | its own delete, time passes',
    [
      ['A', kept],
      ['A', remove('K1')]
    ],
    { ...under(pause), ...created }
  ),
  fleet(
    'put and refer, time passes | maintain, sweep',
    [
      ['A', put('K1', refers)],
      ['B', maintain(false), sweep()]
    ],
    under(pause)
  ),
  fleet(
    'put and refer, put again and refer, time passes | maintain, sweep',
    [
      ['A', put('K1', refers), put('K1', refers)],
      ['B', maintain(false), sweep()]
    ],
    { ...under(pause), isLong: true }
  ),
  fleet(
    'crash of a put and keep, time passes | put and refer, delete',
    [
      ['A', kept],
      ['B', put('K1', refers), remove('K1')]
    ],
    { ...under(crashOf('A'), pause), ...empty }
  ),
  fleet(
    'sweep that is paused and loses its lease | put and keep',
    [
      ['A', sweep()],
      ['B', kept]
    ],
    under(pause, lost)
  ),
  fleet(
    'sweep that is paused and loses its lease | put and refer, sweep',
    [
      ['A', sweep()],
      ['B', put('K1', refers), sweep()]
    ],
    { ...under(pause, lost), isLong: true }
  ),
  fleet(
    'deadline of a put, time passes | delete',
    [
      ['A', kept],
      ['B', remove('K1')]
    ],
    { ...under(missed, pause), ...empty }
  ),
  fleet(
    'large put, time passes | maintain, sweep',
    [
      ['A', streamed],
      ['B', maintain(), sweep()]
    ],
    { ...under(pause), ...large, ...empty, isLong: true }
  ),
  fleet(
    'two kept, renewal, time passes twice || sweep, sweep',
    [
      ['A', kept, put('K2', { keeps: true })],
      ['A', renew(), renew()],
      ['B', sweep(), sweep()]
    ],
    { ...under(lapse, lapse), ...created, isLong: true }
  ),
  fleet(
    'three operations: put and keep, pin and refer, put | renewal || sweep, sweep, delete, time passes',
    [
      ['A', kept, handover, put('K2')],
      ['A', renew()],
      ['B', sweep(), sweep(), remove('K2')]
    ],
    { ...under(pause), ...created, isLong: true }
  )
]

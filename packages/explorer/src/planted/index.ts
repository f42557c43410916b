/** The kept list of planted bugs, each with the smallest configuration that finds it. */
import { type Configuration, LAPSE_MS, LONG_MS, type Operation, type Planted } from '../configuration.js'
import { maintain, pin, put, remove, renew, repair, sweep, vanish } from '../operations.js'
import * as fleets from './fleets.js'
import * as rules from './rules.js'
import * as wrappers from './wrappers.js'

const created = [put('K1')]
/** An entry that an earlier sweep has staged. */
const staged = [put('K1'), sweep()]
const pause = { kind: 'pause', ms: LONG_MS } as const
const minutes = 60_000

function over(
  name: string,
  instances: Partial<Record<'A' | 'B' | 'C', readonly Operation[]>>,
  more: Partial<Configuration> = {}
): Configuration {
  const actors = Object.entries(instances).map(([on, does]) => ({ on: on as 'A' | 'B' | 'C', does }))
  return { name, form: 'durable', before: staged, actors, ...more }
}

const handover = pin('K1', { refers: true })
const put1 = put('K1', { refers: true })
const streamed = put('K1', { refers: true, streams: true })
const large = { large: true } as const

const kept = [put('K1', { keeps: true })]
const lapse = { kind: 'pause', ms: LAPSE_MS } as const

/** An instance of a fleet whose renewal comes round at any time, and another that maintains and deletes. */
function fleet(name: string, does: readonly Operation[], events: Configuration['events'] & object): Configuration {
  return {
    ...over(name, {}),
    fleet: true,
    before: [],
    events,
    mayFail: true,
    actors: [
      { on: 'A', does },
      { on: 'A', does: [renew()] },
      { on: 'B', does: [maintain(false), remove('K1')] }
    ]
  }
}

const LIST: readonly Planted[] = [
  {
    bug: rules.stagesWithoutSecondLook,
    configuration: over('handover, two sweeps', { A: [handover], B: [sweep(), sweep()] }, { before: created })
  },
  {
    bug: wrappers.epochOpensLate,
    configuration: over('inline handover, sweep', { A: [handover], B: [sweep()] }, { form: 'inline', before: created })
  },
  {
    bug: rules.forgetsToCancelOnExisted,
    configuration: over('put of what is staged, sweep', { A: [put1], B: [sweep()] })
  },
  {
    bug: rules.stampsAtStart,
    configuration: over(
      'put without a pin, two sweeps, a pause',
      { A: [put('K1', { unpinned: true })], B: [sweep(), sweep()] },
      { before: created, windowDelayMs: 5 * minutes, events: [pause] }
    )
  },
  {
    bug: wrappers.dropsBeforeRemoving,
    configuration: over('large put of what is staged, sweep', { A: [put1], B: [sweep()] }, large)
  },
  {
    bug: wrappers.reusesLocators,
    configuration: over('large put, delete', { A: [streamed], B: [remove('K1')] }, { ...large, before: created })
  },
  {
    bug: rules.publishesExpiredStage,
    configuration: over(
      'large put, maintenance, a pause',
      { A: [streamed], B: [maintain(false)] },
      { ...large, before: [], events: [pause], mayFail: true }
    )
  },
  {
    bug: wrappers.epochEndsWithPins,
    configuration: over('inline handover, sweep', { A: [handover], B: [sweep()] }, { form: 'inline', before: created })
  },
  {
    bug: rules.pinDoesNotCancel,
    configuration: over('handover of what is staged, sweep', { A: [handover], B: [sweep()] })
  },
  {
    bug: rules.marksAreNotCancelled,
    configuration: over('handover, delete', { A: [handover], B: [remove('K1')] }, { before: created })
  },
  {
    bug: rules.releaseIgnoresGeneration,
    configuration: {
      ...over('two puts of one instance, delete', {}),
      before: [],
      actors: [
        { on: 'A', does: [put('K1')] },
        { on: 'A', does: [put('K1', { keeps: true })] },
        { on: 'B', does: [remove('K1')] }
      ]
    }
  },
  { bug: wrappers.splitAuthority, configuration: over('put of what is staged, sweep', { A: [put1], B: [sweep()] }) },
  {
    bug: rules.repairsByKey,
    configuration: over(
      'put that heals, repair',
      { A: [put('K1', { unpinned: true })], B: [repair()] },
      { ...large, before: [put('K1'), vanish()], windowDelayMs: 5 * minutes }
    )
  },
  {
    bug: wrappers.scanFindsNothing,
    configuration: over(
      'large put that dies, maintenance, a pause',
      { A: [streamed], B: [maintain()] },
      { ...large, before: [], events: [pause, { kind: 'crash', of: 'A' }], mayFail: true }
    )
  },
  {
    bug: rules.marksUnderPins,
    configuration: over('handover, delete', { A: [handover], B: [remove('K1')] }, { before: created })
  },
  {
    bug: rules.releaseIgnoresOwner,
    configuration: over(
      'two puts, one kept, delete',
      { A: [put('K1', { keeps: true })], B: [put('K1')], C: [remove('K1')] },
      { before: [] }
    )
  },
  {
    bug: rules.revivesWithoutCancelling,
    configuration: {
      ...over('handover with a renewal, delete, a pause', {}),
      before: created,
      events: [pause],
      mayFail: true,
      actors: [
        { on: 'A', does: [handover] },
        { on: 'A', does: [renew()] },
        { on: 'B', does: [remove('K1')] }
      ]
    }
  },
  {
    bug: rules.leaseForTwo,
    configuration: over('handover, two sweepers', { A: [sweep()], B: [sweep()], C: [handover] }, { before: created })
  },
  {
    bug: rules.leaseIsNotFenced,
    configuration: over(
      'handover, two sweepers, a lease lost',
      { A: [sweep()], B: [sweep()], C: [handover] },
      { before: created, events: [{ kind: 'lease lost' }], mayFail: true }
    )
  },
  {
    bug: rules.removesWithoutRow,
    configuration: over(
      'delete, maintenance, put, a day passes',
      { A: [remove('K1')], B: [maintain(false), put1] },
      { before: created, events: [{ kind: 'pause', ms: 25 * 60 * minutes }], mayFail: true }
    )
  },
  {
    bug: rules.deleteEndsCandidacy,
    configuration: over('delete of what is staged, sweep', { A: [remove('K1')], B: [sweep()] })
  },
  {
    bug: rules.dueAtOnce,
    configuration: over(
      'put without a pin, two sweeps',
      { A: [put('K1', { unpinned: true })], B: [sweep(), sweep()] },
      { before: created, windowDelayMs: 5 * minutes }
    )
  },
  {
    bug: rules.reapsUnexpired,
    configuration: over(
      'put that is kept, maintenance, delete',
      { A: [put('K1', { keeps: true })], B: [maintain(false), remove('K1')] },
      { before: created }
    )
  },
  {
    bug: rules.healingLeaks,
    configuration: over('put that heals', { A: [put1], B: [pin('K1')] }, { ...large, before: [put('K1'), vanish()] })
  },
  {
    bug: rules.unstageLeaks,
    configuration: over('two large puts', { A: [streamed], B: [streamed] }, { ...large, before: [] })
  },
  {
    bug: rules.stagesAreUnknown,
    configuration: over('large put, maintenance', { A: [streamed], B: [maintain()] }, { ...large, before: [] })
  },
  { bug: fleets.revivesInAFleet, configuration: fleet('put, renewal, a pause', kept, [pause]) },
  {
    bug: fleets.renewsFirstPage,
    configuration: {
      ...over('two puts, renewal, two lapses', { A: [...kept, put('K2', { keeps: true }), renew()] }),
      ...{ fleet: true, before: [], events: [lapse, lapse], mayFail: true }
    }
  },
  {
    bug: fleets.ignoresOtherOwners,
    configuration: { ...over('put that is kept, two sweeps', { A: kept, B: [sweep(), sweep()] }), fleet: true }
  },
  {
    bug: fleets.expiresByOwnClock,
    configuration: { ...over('put that is kept, two sweeps', { A: kept, B: [sweep(), sweep()] }), fleet: true }
  },
  { bug: fleets.renewalMakesRows, configuration: fleet('put, renewal, delete, a pause', kept, [pause]) }
]

/** Each under the name of its bug, so that the id of a schedule says which bug to plant for its replay. */
export const PLANTED: readonly Planted[] = LIST.map(({ bug, configuration }) => ({
  bug,
  configuration: { ...configuration, name: bug.name }
}))

/** A catalog whose every call is a step: the call waits in the world until the scheduler picks it. */
import type { BlobKey, Catalog, Found, Lease, Publication, StageId } from '@alkblobs/core/engine'
import type { Footprint, Resource } from './footprint.js'
import type { Stillness } from './still.js'
import { telling } from './telling.js'
import type { World } from './world.js'

/** How an instance's calls become steps. */
export interface Scheduling {
  readonly world: World
  readonly who: string
  /** Whether calls whose effect and answer core must tell apart have a step for each. */
  readonly splits: boolean
  /** The calls that are no scheduling points. */
  readonly still: Stillness
  /** Told of every lease the instance takes. */
  readonly onLease: (lease: Lease) => void
}

/** The calls whose answer changes what the instance counts on: its own other operations may come between effect and answer. */
const SPLIT = new Set(['publish', 'pin', 'renew', 'release', 'stage', 'unstage'])

/** Makes steps of one instance's calls, and knows the leases behind those it handed out. */
export class Caller {
  readonly #how: Scheduling
  readonly #leases = new WeakMap<Lease, Lease>()

  constructor(how: Scheduling) {
    this.#how = how
  }

  step<T>(
    name: string,
    what: string,
    touches: Footprint,
    effect: () => Promise<T>,
    tell?: (answer: T) => unknown
  ): Promise<T> {
    const { world, who, splits, still } = this.#how
    const label = what === '' ? name : `${name} ${what}`
    const how = { split: splits && SPLIT.has(name), isStill: still.has(name) }
    return world.act({ who, label, touches, effect, ...how, ...(tell && { tell }) })
  }

  /** What an instance that ends without a word leaves to its operating system. */
  async takes(leased: Promise<Lease | undefined>): Promise<Lease | undefined> {
    const lease = await leased
    if (lease !== undefined) this.#how.onLease(lease)
    return lease
  }

  /** The lease as the instance sees it: its release is a step like any other. */
  wrapped(lease: Lease, touched: readonly Resource[]): Lease {
    const release = () => this.step('lease.release', '', { writes: touched }, () => lease.release())
    const wrapped: Lease = { lost: lease.lost, release }
    this.#leases.set(wrapped, lease)
    return wrapped
  }

  /** The engine's own lease, where there is one. */
  own(lease: Lease): Lease
  own(lease: Lease | undefined): Lease | undefined
  own(lease: Lease | undefined): Lease | undefined {
    return lease && this.#leases.get(lease)
  }

  /** G4: nothing is begun after the doubt. */
  begins(name: string, lease: Lease | undefined): void {
    const { world, who } = this.#how
    if (lease?.lost.aborted === true) world.violate(`G4: ${who} begins ${name} after its lease was lost`)
  }
}

export function scheduledCatalog(inner: Catalog, how: Scheduling): Catalog {
  const caller = new Caller(how)
  return {
    form: inner.form,
    inlineLengthMax: inner.inlineLengthMax,
    ...(inner.server && { server: inner.server }),
    meta: meta(inner, caller),
    ...looking(inner, caller),
    ...writing(inner, caller),
    ...sweeping(inner, caller),
    ...reclaiming(inner, caller)
  }
}

function meta({ meta: inner }: Catalog, caller: Caller): Catalog['meta'] {
  return {
    read: call => caller.step('meta.read', '', { reads: ['record'] }, () => inner.read(call), telling.record),
    compareAndSet: (expected, next, call) =>
      caller.step('meta.compareAndSet', '', { writes: ['record'] }, () => inner.compareAndSet(expected, next, call))
  }
}

function looking(inner: Catalog, caller: Caller): Pick<Catalog, 'find' | 'read' | 'list' | 'explain' | 'usage'> {
  return {
    find: (keys, call) =>
      caller.step('find', keys.join(), { reads: keys.map(ofKey) }, () => inner.find(keys, call), telling.entries),
    read: (key, call) => caller.step('read', key, { reads: [ofKey(key)] }, () => inner.read(key, call)),
    list: (after, limit, call) =>
      caller.step('list', '', { reads: ['key'] }, () => inner.list(after, limit, call), telling.entries),
    explain: (key, call) => caller.step('explain', key, { reads: [ofKey(key)] }, () => inner.explain(key, call)),
    usage: call => caller.step('usage', '', { reads: ['key', 'stage', 'trash'] }, () => inner.usage(call))
  }
}

type Writing = 'stage' | 'staged' | 'unstage' | 'publish' | 'pin' | 'renew' | 'release'

function writing(inner: Catalog, caller: Caller): Pick<Catalog, Writing> {
  return {
    stage: (stages, call) => {
      const ids = stages.map(({ id }) => id)
      return caller.step('stage', ids.join(), { writes: ids.map(ofStage) }, () => inner.stage(stages, call))
    },
    staged: (stages, call) =>
      caller.step(
        'staged',
        stages.join(),
        { reads: stages.map(ofStage) },
        () => inner.staged(stages, call),
        telling.yes
      ),
    unstage: (stages, call) =>
      caller.step(
        'unstage',
        stages.join(),
        { writes: ['trash', ...stages.map(ofStage)] },
        () => inner.unstage(stages, call),
        telling.yes
      ),
    publish: (items, call) =>
      caller.step(
        'publish',
        items.map(shown).join(),
        publishing(items),
        () => inner.publish(items, call),
        telling.publish
      ),
    pin: (items, call) => {
      const keys = items.map(({ key }) => key)
      return caller.step('pin', keys.join(), { writes: keys.map(ofKey) }, () => inner.pin(items, call), telling.entries)
    },
    renew: (request, call) => {
      const { pins, stages } = request
      const names = [...pins.map(({ key, pin }) => `${key} at ${pin.generation}`), ...stages]
      const writes = [...pins.map(({ key }) => ofKey(key)), ...stages.map(ofStage)]
      return caller.step('renew', names.join(), { writes }, () => inner.renew(request, call), telling.renew)
    },
    release: (pins, call) => {
      const names = pins.map(({ key, pin }) => `${key} at ${pin.generation}`)
      const writes = pins.map(({ key }) => ofKey(key))
      return caller.step('release', names.join(), { writes }, () => inner.release(pins, call))
    }
  }
}

function publishing(items: readonly Publication[]): Footprint {
  const writes: Resource[] = items.map(({ key }) => ofKey(key))
  for (const { bytes, healing } of items) {
    if (bytes.kind === 'staged') writes.push(ofStage(bytes.stage))
    if (healing !== undefined) writes.push('trash')
  }
  return { reads: ['record'], writes }
}

type Sweeping = 'lease' | 'candidates' | 'stageCandidates' | 'due' | 'mark' | 'remove'

/** On an inline form a lease opens and ends the epoch, which is a matter of every key. */
function sweeping(inner: Catalog, caller: Caller): Pick<Catalog, Sweeping> {
  const epoch: Resource[] = inner.form === 'inline' ? ['lease', 'key'] : ['lease']
  return {
    lease: async call => {
      const tell = (lease: Lease | undefined) => (lease ? 'held' : 'refused')
      const lease = await caller.step('lease', '', { writes: epoch }, () => caller.takes(inner.lease(call)), tell)
      return lease && caller.wrapped(lease, epoch)
    },
    candidates: (lease, after, limit, call) => {
      const effect = () => inner.candidates(caller.own(lease), after, limit, call)
      return caller.step('candidates', '', { reads: ['lease', 'key'] }, effect, telling.candidates)
    },
    stageCandidates: (lease, keys, call) => {
      caller.begins('stageCandidates', lease)
      const touches: Footprint = { reads: ['lease', 'record'], writes: keys.map(ofKey) }
      const effect = () => inner.stageCandidates(caller.own(lease), keys, call)
      return caller.step('stageCandidates', keys.join(), touches, effect, telling.keys)
    },
    due: (lease, after, limit, call) => {
      const effect = () => inner.due(caller.own(lease), after, limit, call)
      return caller.step('due', '', { reads: ['lease', 'key'] }, effect, ({ keys }) => telling.keys(keys))
    },
    mark: (key, call) => {
      const tell = (answer: unknown) => (typeof answer === 'string' ? answer : 'marked')
      return caller.step('mark', key, { writes: [ofKey(key)] }, () => inner.mark(key, call), tell)
    },
    remove: (items, trashDelayMs, lease, call) => {
      caller.begins('remove', lease)
      const what = items.map(({ kind, key, live }) => `${key} (${kind}${live ? ', live' : ''})`)
      const writes: Resource[] = ['trash', ...items.map(({ key }) => ofKey(key))]
      const effect = () => inner.remove(items, trashDelayMs, lease && caller.own(lease), call)
      return caller.step('remove', what.join(), { reads: ['lease', 'record'], writes }, effect, telling.remove)
    }
  }
}

type Reclaiming = 'trash' | 'known' | 'discard' | 'dropped' | 'maintain'

function reclaiming(inner: Catalog, caller: Caller): Pick<Catalog, Reclaiming> {
  const everywhere: Footprint = { reads: ['key', 'stage', 'trash'] }
  return {
    trash: (after, limit, call) =>
      caller.step('trash', '', { reads: ['trash'] }, () => inner.trash(after, limit, call), telling.trash),
    known: (found, call) =>
      caller.step('known', namesOf(found), everywhere, () => inner.known(found, call), telling.yes),
    discard: (found, call) =>
      caller.step('discard', namesOf(found), { ...everywhere, writes: ['trash'] }, () => inner.discard(found, call)),
    dropped: (records, call) =>
      caller.step('dropped', records.map(({ what }) => what).join(), { writes: ['trash'] }, () =>
        inner.dropped(records, call)
      ),
    maintain: (lease, call) => {
      caller.begins('maintain', lease)
      const touches: Footprint = { reads: ['lease'], writes: ['key', 'stage', 'trash'] }
      return caller.step('maintain', '', touches, () => inner.maintain(caller.own(lease), call), telling.maintain)
    }
  }
}

const ofKey = (key: BlobKey): Resource => `key:${key}`
const ofStage = (stage: StageId): Resource => `stage:${stage}`

function shown({ key, bytes, healing }: Publication): string {
  return `${key} (${bytes.kind}${healing === undefined ? '' : ', healing'})`
}

function namesOf(found: readonly Found[]): string {
  return found.map(({ stage, sealed }) => sealed?.locator ?? stage).join()
}

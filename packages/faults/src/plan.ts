/**
 * What is to go wrong, and when. A plan is handed to `faulty` for every engine of a store; each call of the contract asks it first.
 * Faults that fit a call strike in the order in which they were armed.
 */
import type { Call } from '@alkblobs/core/engine'
import { operationNow } from './during.js'
import { systemError } from './errors.js'
import { type Armed, type Cell, type Ledger, ledger, type Ticket } from './ledger.js'
import type { FaultPoint } from './points.js'
import { surfacesAt } from './surfaces.js'

/** One call of the contract, as a fault meets it. */
export interface Strike {
  readonly point: FaultPoint
  readonly engine: string
  /** The operation of the facade that it belongs to, where somebody said so (`during`). */
  readonly operation: string | undefined
  /** `undefined` for methods that take none, such as those of a writer. */
  readonly call: Call | undefined
}

/** What a fault does to the call. */
export type How =
  | { readonly kind: 'fail'; readonly error: (at: Strike) => unknown }
  | { readonly kind: 'delay'; readonly ms: number }
  /** Waits for the call's deadline or signal and then fails as a system does that waited in vain; without either, until it is finished. */
  | { readonly kind: 'hang' }
  /**
   * `bodies.read` and `bodies.writer.write` alone, and `nth` counts bodies: so many bytes pass, then the body fails, or, `short`, a read
   * ends as if complete.
   */
  | { readonly kind: 'cut'; readonly atByte: number; readonly error?: (at: Strike) => unknown; readonly short?: true }
  /** Anything else: a barrier, a killed session, a marker. The call goes on when it resolves, and fails if it rejects. */
  | { readonly kind: 'act'; readonly act: (at: Strike) => unknown }

export interface Fault {
  /** The calls meant; all of them if left out. */
  readonly at?: FaultPoint | ((at: Strike) => boolean)
  /** Which of the calls meant, from 1. Default 1. */
  readonly nth?: number
  /** `for good`: that one and every later one that is meant. Default `once`. */
  readonly lasting?: 'once' | 'for good'
  /** Whether the call's effect happens all the same. Default `before`: it does not. */
  readonly when?: 'before' | 'after'
  readonly how: How
}

/** An armed fault. `finish` ends it, and whatever hangs by it. */
export interface ArmedFault extends Armed {
  /** Where it struck so far. */
  readonly struck: readonly Strike[]
  /** Takes back a fault that was armed for a call that never came. @throws if it has fired. */
  retract(): void
}

class Active implements ArmedFault {
  readonly fault: Fault
  readonly struck: Strike[] = []
  readonly what: string
  readonly #ticket: Ticket
  readonly #onOver: () => void
  readonly #over = later()
  #seen = 0

  constructor(fault: Fault, ticket: Ticket, onOver: () => void) {
    this.fault = fault
    this.what = ticket.what
    this.#ticket = ticket
    this.#onOver = onOver
  }

  get hasFired(): boolean {
    return this.#ticket.hasFired
  }

  /** Counts a call that fits, and says whether it is one to strike. */
  takes(at: Strike): boolean {
    const { fault } = this
    const fits = fault.at === undefined || (typeof fault.at === 'function' ? fault.at(at) : fault.at === at.point)
    if (!fits) return false
    this.#seen += 1
    const { nth = 1, lasting = 'once' } = fault
    return lasting === 'once' ? this.#seen === nth : this.#seen >= nth
  }

  fired(at: Strike): void {
    this.struck.push(at)
    // Something that is only brought about here is no fault of this layer; whoever brings it about records it.
    this.#ticket.fire(this.fault.how.kind === 'act' ? [] : cellsAt(at))
  }

  /** Resolves when the fault is over. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  finish(): void {
    this.#end()
    this.#ticket.finish()
  }

  retract(): void {
    this.#end()
    this.#ticket.retract()
  }

  #end(): void {
    this.#onOver()
    this.#over.resolve()
  }
}

/** A promise and the function that resolves it. */
function later(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>(done => {
    resolve = done
  })
  return { promise, resolve }
}

function cellsAt({ point, operation, engine }: Strike): Cell[] {
  return surfacesAt(point, operation).map(surface => ({ surface, engine, layer: 'injector' }))
}

export class FaultPlan {
  readonly #ledger: Ledger
  readonly #active = new Set<Active>()
  readonly #watchers = new Set<(at: Strike) => void>()

  constructor(into: Ledger = ledger) {
    this.#ledger = into
  }

  /** The fault strikes from now on, until it is finished, which it must be. */
  arm(fault: Fault): ArmedFault {
    const { nth = 1, lasting = 'once', when = 'before', how, at } = fault
    const where = typeof at === 'string' ? at : at === undefined ? 'any call' : 'chosen calls'
    const ticket = this.#ledger.arm(`${how.kind} ${when} call ${nth} of ${where}, ${lasting}`)
    const active = new Active(fault, ticket, () => this.#active.delete(active))
    this.#active.add(active)
    return active
  }

  /** Sees every call, before any fault does, until the returned function is called. */
  watch(see: (at: Strike) => void): () => void {
    this.#watchers.add(see)
    return () => this.#watchers.delete(see)
  }

  /** @internal Runs one call of the contract past the faults. */
  async pass<T>(where: Omit<Strike, 'operation'>, run: () => Promise<T>): Promise<T> {
    const at: Strike = { ...where, operation: operationNow() }
    for (const see of this.#watchers) see(at)
    const faults = this.#strikingAt(at)
    for (const each of faults) if (each.fault.when !== 'after') await strike(each, at)
    const answer = await run()
    for (const each of faults) if (each.fault.when === 'after') await strike(each, at)
    return answer
  }

  /** @internal The cut that a stream of bytes is to meet, if there is one. */
  cutAt(where: Omit<Strike, 'operation'>): Cut | undefined {
    const at: Strike = { ...where, operation: operationNow() }
    for (const each of this.#active) {
      if (each.fault.how.kind === 'cut' && each.takes(at)) return new Cut(each, at, each.fault.how)
    }
    return undefined
  }

  #strikingAt(at: Strike): Active[] {
    return [...this.#active].filter(each => each.fault.how.kind !== 'cut' && each.takes(at))
  }
}

/** A cut that travels with one stream. */
export class Cut {
  readonly #active: Active
  readonly #at: Strike
  readonly #how: Extract<How, { kind: 'cut' }>
  #left: number

  /** @internal */
  constructor(active: Active, at: Strike, how: Extract<How, { kind: 'cut' }>) {
    this.#active = active
    this.#at = at
    this.#how = how
    this.#left = how.atByte
  }

  /** How many of these bytes may pass; fewer than asked for the last time, and then `end` is due. */
  take(length: number): number {
    const passed = Math.min(length, this.#left)
    this.#left -= passed
    return passed
  }

  /** The stream has come to the cut. @throws the error of the fault, unless it ends the stream as if complete. */
  end(): void {
    this.#active.fired(this.#at)
    if (this.#how.short === true) return
    throw this.#how.error?.(this.#at) ?? systemError('EIO', 'read')
  }
}

async function strike(active: Active, at: Strike): Promise<void> {
  const { how } = active.fault
  active.fired(at)
  switch (how.kind) {
    case 'fail':
      throw how.error(at)
    case 'delay':
      return await new Promise(resolve => setTimeout(resolve, how.ms))
    case 'hang':
      return await hang(active, at.call)
    case 'act':
      await how.act(at)
      return
    case 'cut':
      return
  }
}

/** Settles as late as the contract allows, and not later (ENG-4). */
async function hang(active: Active, call: Call | undefined): Promise<void> {
  const ends = [active.over]
  let timer: NodeJS.Timeout | undefined
  let abort: (() => void) | undefined
  if (call !== undefined && Number.isFinite(call.deadlineMs)) {
    ends.push(
      new Promise(resolve => {
        timer = setTimeout(resolve, Math.max(0, call.deadlineMs - performance.now()))
      })
    )
  }
  if (call?.signal !== undefined) {
    const { signal } = call
    ends.push(
      new Promise(resolve => {
        abort = resolve
        signal.addEventListener('abort', resolve as () => void, { once: true })
      })
    )
  }
  await Promise.race(ends)
  clearTimeout(timer)
  if (abort !== undefined) call?.signal?.removeEventListener('abort', abort)
  call?.signal?.throwIfAborted()
  throw systemError('ETIMEDOUT', 'read')
}

/**
 * An engine for tests that must see core meet a failure: a catalog and a body store in memory, kept small, whose every step
 * can be held, failed before or after its effect, or lied about. It is no reference for engine authors; that is engine-mem.
 *
 * Time is `clock`, in milliseconds, and passes only when a test says so.
 */
import type {
  BlobKey,
  BodyStore,
  BodyWriter,
  Call,
  Catalog,
  Claim,
  DeleteMark,
  Engine,
  EngineDefinition,
  Entry,
  ErrorCode,
  Found,
  Lease,
  Locator,
  Owner,
  Place,
  PoolRecord,
  Publication,
  PublishOutcome,
  Removal,
  RemoveOutcome,
  ServerCatalog,
  ServerIdentity,
  StageId,
  Trashed
} from '../src/engine.js'
import { EngineFault, formatKey } from '../src/engine.js'

/** What becomes of one step: it gets the effect, and answers in the step's place. */
export type Plan = (effect: () => Promise<unknown>, call: Call | undefined) => Promise<unknown>

/** A step that has been stopped. */
export interface Gate {
  /** Resolves when a call has come to the gate. */
  readonly reached: Promise<void>
  /** Lets the call go on. */
  open(): void
  /** Lets it end with an error instead; whether its effect has happened depends on where the gate stood. */
  fail(error: unknown): void
}

interface PinHeld {
  generation: number
  expiresAt: number
}

interface WindowRow {
  stagedAt: number
  cancelled: boolean
}

interface Options {
  readonly form?: 'inline' | 'durable'
  readonly durability?: 'process' | 'os' | 'disk'
  /** Whether the lease judges enumerated live keys itself. */
  readonly judgesLive?: boolean
  readonly inlineLengthMax?: number
  /** Puts both media on a server; `bodies`: the large one on another. */
  readonly server?: { readonly kv: ServerIdentity; readonly bodies?: ServerIdentity }
}

/** A server of the tests. */
export function serverAt(system: string, database = '1', timeline = 1): ServerIdentity {
  return { system, database, timeline }
}

export class Scripted {
  readonly kv: EngineDefinition
  readonly large: EngineDefinition
  /** Every step in the order it began. */
  readonly steps: string[] = []
  /** Every call's arguments, in the same order. */
  readonly given: { readonly step: string; readonly args: readonly unknown[] }[] = []
  clock = 0
  windowDelayMs = 0
  /** Where the media are, if they are on a server; a test moves them. */
  server: Options['server']
  sessionsMax = 2
  unfit: string | undefined

  record: PoolRecord | undefined
  claim: Claim | undefined
  readonly entries = new Map<BlobKey, { entry: Entry; body?: Uint8Array }>()
  readonly pins = new Map<string, PinHeld>()
  readonly stages = new Map<StageId, number>()
  readonly trash = new Map<string, Trashed>()
  readonly window = new Map<BlobKey, WindowRow>()
  readonly marks = new Map<DeleteMark, { key: BlobKey; cancelled: boolean }>()
  readonly bodies = new Map<Locator, { stage: StageId; key: BlobKey; bytes: Uint8Array }>()
  readonly halves = new Map<StageId, Uint8Array[]>()
  /** Writers and readers that are open now. */
  open = 0
  readonly closed: string[] = []
  /** Live keys that were loaded beside the lease. */
  readonly loaded: BlobKey[] = []
  classify: (error: unknown) => ErrorCode = error => (error instanceof EngineFault ? error.code : 'unknown')

  readonly #options: Options
  readonly #next = new Map<string, Plan[]>()
  readonly #every = new Map<string, Plan>()
  #lease: { lease: Lease; lost: AbortController; epoch: Set<BlobKey> } | undefined
  #marked = 0

  constructor(options: Options = {}) {
    this.#options = options
    this.server = options.server
    this.kv = { name: 'scripted', open: async () => this.#engine('kv', { catalog: this.#catalog() }) }
    this.large = { name: 'scripted-bodies', open: async () => this.#engine('large', { bodies: this.#bodies() }) }
  }

  /** Plans the next call of a step that has no plan yet. */
  next(step: string, plan: Plan): void {
    this.#next.set(step, [...(this.#next.get(step) ?? []), plan])
  }

  /** Plans every call of a step, after those planned with `next`. */
  every(step: string, plan: Plan): void {
    this.#every.set(step, plan)
  }

  heal(): void {
    this.#every.clear()
    this.#next.clear()
  }

  /** The next call of the step fails, and nothing has happened. */
  failBefore(step: string, error: unknown = new Error(`${step} failed`)): void {
    this.next(step, async () => {
      throw error
    })
  }

  /** The next call of the step has its effect, and then fails. */
  failAfter(step: string, error: unknown = new Error(`the answer of ${step} was lost`)): void {
    this.next(step, async effect => {
      await effect()
      throw error
    })
  }

  /** The next call of the step answers something else than the truth. */
  lie(step: string, answer: (truth: never) => unknown): void {
    this.next(step, async effect => answer((await effect()) as never))
  }

  /** The next call of the step stops before its effect. */
  gate(step: string): Gate {
    return this.#gate(step, (wait, effect) => wait.then(effect))
  }

  /** The next call of the step has its effect and stops before it answers. */
  gateAfter(step: string): Gate {
    return this.#gate(step, async (wait, effect) => {
      const answer = await effect()
      await wait
      return answer
    })
  }

  /** How often a step began. */
  count(step: string): number {
    return this.steps.filter(name => name === step).length
  }

  loseLease(): void {
    const held = this.#lease
    this.#lease = undefined
    held?.lost.abort(new Error('the session died'))
  }

  get leased(): boolean {
    return this.#lease !== undefined
  }

  /** Whether anything is there that a failed put must not leave. */
  get residue(): object {
    const { entries, stages, halves, bodies, trash, open } = this
    return {
      entries: entries.size,
      stages: stages.size,
      halves: halves.size,
      bodies: bodies.size,
      trash: trash.size,
      open
    }
  }

  #gate(step: string, run: (wait: Promise<void>, effect: () => Promise<unknown>) => Promise<unknown>): Gate {
    let reach = () => {}
    let open = () => {}
    let fail = (_: unknown) => {}
    const reached = new Promise<void>(resolve => {
      reach = resolve
    })
    const wait = new Promise<void>((resolve, reject) => {
      open = resolve
      fail = reject
    })
    wait.catch(() => {})
    this.next(step, effect => {
      const answer = run(wait, effect)
      reach()
      return answer
    })
    return { reached, open: () => open(), fail: error => fail(error) }
  }

  async #step<T>(step: string, call: Call | undefined, args: readonly unknown[], effect: () => T): Promise<T> {
    this.steps.push(step)
    this.given.push({ step, args })
    const queued = this.#next.get(step)
    const plan = queued?.shift() ?? this.#every.get(step)
    if (plan === undefined) return effect()
    return (await plan(async () => effect(), call)) as T
  }

  #engine(name: string, parts: { catalog?: Catalog; bodies?: BodyStore }): Engine {
    return {
      name: name === 'kv' ? 'scripted' : 'scripted-bodies',
      version: '0.0.0',
      durability: name === 'kv' ? (this.#options.durability ?? 'disk') : 'disk',
      ...parts,
      classify: error => this.classify(error),
      close: () => this.#step(`${name}.close`, undefined, [], () => void this.closed.push(name))
    }
  }

  #isPinned(key: BlobKey): boolean {
    return [...this.pins].some(([id, { expiresAt }]) => id.startsWith(key) && expiresAt > this.clock)
  }

  #protect(key: BlobKey, pin: Publication['pin']): void {
    if (pin !== undefined) {
      const id = `${key} ${pin.row.owner}`
      const held = this.pins.get(id)
      this.pins.set(id, {
        generation: Math.max(pin.row.generation, held?.generation ?? 0),
        expiresAt: Math.max(this.clock + pin.ttlMs, held?.expiresAt ?? 0)
      })
    }
    const row = this.window.get(key)
    if (row !== undefined) row.cancelled = true
    for (const mark of this.marks.values()) if (mark.key === key) mark.cancelled = true
    this.#lease?.epoch.add(key)
  }

  #checkLease(lease: Lease | undefined): Set<BlobKey> {
    if (this.#lease === undefined || this.#lease.lease !== lease) throw new EngineFault('conflict', 'no lease')
    return this.#lease.epoch
  }

  #publish(item: Publication): PublishOutcome {
    const { key, length, bytes } = item
    if (bytes.kind === 'staged' && (this.stages.get(bytes.stage) ?? -1) <= this.clock) return { outcome: 'stage-lost' }
    const found = this.entries.get(key)?.entry
    const heals = found !== undefined && item.healing !== undefined && samePlace(found.place, item.healing)
    if (found !== undefined && (bytes.kind === 'none' || !heals)) {
      this.#protect(key, item.pin)
      return { outcome: 'existed', entry: found }
    }
    if (bytes.kind === 'none') return { outcome: 'absent' }
    if (found?.place.tier === 'large') this.#discard(found.place.locator, key, found.length)
    const entry: Entry =
      bytes.kind === 'staged'
        ? { key, length, place: { tier: 'large', locator: bytes.locator } }
        : { key, length, place: { tier: 'kv', length: bytes.body.length } }
    if (bytes.kind === 'staged') this.stages.delete(bytes.stage)
    this.entries.set(key, bytes.kind === 'inline' ? { entry, body: Uint8Array.from(bytes.body) } : { entry })
    this.#protect(key, item.pin)
    return { outcome: heals ? 'healed' : 'created', entry }
  }

  #remove(item: Removal): RemoveOutcome {
    const { key, live } = item
    const found = this.entries.get(key)?.entry
    const row = item.kind === 'candidate' ? this.window.get(key) : this.marks.get(item.mark)
    if (item.kind === 'candidate') this.window.delete(key)
    else this.marks.delete(item.mark)
    if (item.kind === 'marked') {
      if (found === undefined || (item.at !== undefined && !samePlace(found.place, item.at))) {
        return { outcome: 'absent' }
      }
    }
    if (row === undefined || row.cancelled) return { outcome: 'cancelled' }
    if (found === undefined) return { outcome: 'deleted', entry: undefined }
    const isInEpoch = item.kind === 'candidate' && this.#form === 'inline' && this.#lease?.epoch.has(key) === true
    if (live || this.#isPinned(key) || isInEpoch || this.loaded.includes(key)) return { outcome: 'cancelled' }
    this.entries.delete(key)
    if (found.place.tier === 'large') this.#discard(found.place.locator, key, found.length)
    return { outcome: 'deleted', entry: found }
  }

  #discard(what: Locator | StageId, key?: BlobKey, length?: number): void {
    this.trash.set(what, { what, key, length, attempts: 0 })
  }

  get #form(): 'inline' | 'durable' {
    return this.#options.form ?? 'durable'
  }

  #takeLease(): Lease | undefined {
    if (this.#lease !== undefined) return undefined
    const lost = new AbortController()
    const release = () =>
      this.#step('lease.release', undefined, [], () => {
        if (this.#lease?.lease === lease) this.#lease = undefined
        this.loaded.length = 0
      })
    const add = (digests: Uint8Array, call: Call) =>
      this.#step('lease.live', call, [digests], () => {
        for (let at = 0; at < digests.length; at += 32)
          this.loaded.push(formatKey('blake3', digests.subarray(at, at + 32)))
      })
    const lease: Lease = {
      lost: lost.signal,
      release,
      ...(this.#options.judgesLive === true && { live: { add } })
    }
    const pinned = [...this.pins.keys()].map(id => id.split(' ')[0] as BlobKey)
    this.#lease = { lease, lost, epoch: new Set(pinned) }
    return lease
  }

  #catalog(): Catalog {
    const run = <T>(step: string, call: Call, args: readonly unknown[], effect: () => T) =>
      this.#step(step, call, args, effect)
    return {
      inlineLengthMax: this.#options.inlineLengthMax ?? 1_000_000,
      form: this.#form,
      meta: {
        read: call => run('meta.read', call, [], () => this.record),
        compareAndSet: (expected, next, call) =>
          run('meta.compareAndSet', call, [expected, next], () => {
            if (JSON.stringify(this.record) !== JSON.stringify(expected)) return false
            this.record = next
            return true
          })
      },
      find: (keys, call) => run('find', call, [keys], () => keys.map(key => this.entries.get(key)?.entry)),
      read: (key, call) =>
        run('read', call, [key], () => {
          const found = this.entries.get(key)
          return found && { ...found, ...(found.body && { body: Uint8Array.from(found.body) }) }
        }),
      list: (after, limit, call) => run('list', call, [after, limit], () => this.#sorted(after).slice(0, limit)),
      explain: (key, call) =>
        run('explain', call, [key], () => ({
          entry: this.entries.get(key)?.entry,
          pins: [...this.pins]
            .filter(([id]) => id.startsWith(key))
            .map(([id, { expiresAt }]) => ({
              owner: id.split(' ')[1] as Owner,
              expiresInMs: expiresAt - this.clock
            })),
          window: this.#explainWindow(key)
        })),
      usage: call =>
        run('usage', call, [], () => {
          const of = (tier: Place['tier']) => {
            const entries = this.#sorted(undefined).filter(entry => entry.place.tier === tier)
            return { entries: entries.length, bytes: entries.reduce((sum, { length }) => sum + length, 0) }
          }
          const [pins, window, stages, trash] = [this.pins, this.window, this.stages, this.trash].map(map => map.size)
          return { kv: of('kv'), large: of('large'), pins, window, stages, trash } as never
        }),
      stage: (intents, call) =>
        run('stage', call, [intents], () => {
          for (const { id, ttlMs } of intents) this.stages.set(id, this.clock + ttlMs)
        }),
      staged: (ids, call) => run('staged', call, [ids], () => ids.map(id => (this.stages.get(id) ?? -1) > this.clock)),
      unstage: (ids, call) =>
        run('unstage', call, [ids], () =>
          ids.map(id => {
            const wasThere = this.stages.delete(id)
            if (wasThere) this.#discard(id)
            return wasThere
          })
        ),
      publish: (items, call) => run('publish', call, [items], () => items.map(item => this.#publish(item))),
      pin: (items, call) =>
        run('pin', call, [items], () =>
          items.map(({ key, pin, ttlMs }) => {
            const entry = this.entries.get(key)?.entry
            if (entry !== undefined) this.#protect(key, { row: pin, ttlMs })
            return entry
          })
        ),
      renew: (request, call) =>
        run('renew', call, [request], () => ({
          pins: request.pins.filter(({ key, pin }) => {
            const held = this.pins.get(`${key} ${pin.owner}`)
            if (held === undefined || held.generation < pin.generation) return true
            if (!request.revive && held.expiresAt <= this.clock) return true
            held.expiresAt = Math.max(held.expiresAt, this.clock + request.pinTtlMs)
            return false
          }),
          stages: request.stages.filter(id => {
            const lost = (this.stages.get(id) ?? -1) <= this.clock
            if (!lost) this.stages.set(id, this.clock + request.stageTtlMs)
            return lost
          })
        })),
      release: (rows, call) =>
        run('release', call, [rows], () => {
          for (const { key, pin } of rows) {
            const id = `${key} ${pin.owner}`
            if ((this.pins.get(id)?.generation ?? Number.POSITIVE_INFINITY) <= pin.generation) this.pins.delete(id)
          }
        }),
      lease: call => run('lease', call, [], () => this.#takeLease()),
      candidates: (lease, after, limit, call) =>
        run('candidates', call, [after, limit], () =>
          this.#candidates(lease && this.#checkLease(lease), after as BlobKey | undefined, limit)
        ),
      stageCandidates: (lease, keys, call) =>
        run('stageCandidates', call, [keys], () => {
          this.#checkLease(lease)
          const dead = keys.filter(key => this.entries.has(key) && !this.window.has(key) && !this.#isPinned(key))
          for (const key of dead) this.window.set(key, { stagedAt: this.clock, cancelled: false })
          return dead
        }),
      due: (lease, after, limit, call) =>
        run('due', call, [after, limit], () => {
          this.#checkLease(lease)
          const isDue = ({ cancelled, stagedAt }: WindowRow) =>
            cancelled || this.#form === 'inline' || stagedAt + this.windowDelayMs <= this.clock
          const due = [...this.window].filter(([key, row]) => isDue(row) && (after === undefined || key > after))
          const keys = due
            .map(([key]) => key)
            .sort()
            .slice(0, limit)
          return { keys, next: due.length > limit ? keys.at(-1) : undefined }
        }),
      mark: (key, call) =>
        run('mark', call, [key], () => {
          if (this.#isPinned(key)) return 'pinned'
          const entry = this.entries.get(key)?.entry
          if (entry === undefined) return 'absent'
          const mark = `mark-${++this.#marked}` as DeleteMark
          this.marks.set(mark, { key, cancelled: false })
          return { mark, entry }
        }),
      remove: (items, trashDelayMs, lease, call) =>
        run('remove', call, [items, trashDelayMs], () => {
          if (items.some(({ kind }) => kind === 'candidate')) this.#checkLease(lease)
          return items.map(item => this.#remove(item))
        }),
      trash: (after, limit, call) =>
        run('trash', call, [after, limit], () =>
          [...this.trash.values()]
            .filter(({ what }) => after === undefined || what > after)
            .sort((a, b) => (a.what < b.what ? -1 : 1))
            .slice(0, limit)
        ),
      known: (found, call) => run('known', call, [found], () => found.map(body => this.#isKnown(body))),
      discard: (found, call) =>
        run('discard', call, [found], () => {
          for (const body of found) {
            if (!this.#isKnown(body))
              this.#discard(body.sealed?.locator ?? body.stage, body.sealed?.key, body.sealed?.length)
          }
        }),
      dropped: (records, call) =>
        run('dropped', call, [records], () => {
          for (const { what, retryAfterMs } of records) if (retryAfterMs === undefined) this.trash.delete(what)
        }),
      maintain: (lease, call) =>
        run('maintain', call, [], () => {
          this.#checkLease(lease)
          let [pinsReaped, stagesTrashed] = [0, 0]
          for (const [id, { expiresAt }] of this.pins) {
            if (expiresAt > this.clock) continue
            this.pins.delete(id)
            pinsReaped++
          }
          for (const [id, expiresAt] of this.stages) {
            if (expiresAt > this.clock) continue
            this.stages.delete(id)
            this.#discard(id)
            stagesTrashed++
          }
          return { pinsReaped, stagesTrashed }
        }),
      ...(this.#options.server && { server: this.#serverCatalog() })
    }
  }

  #serverCatalog(): ServerCatalog {
    const scripted = this
    return {
      get sessionsMax() {
        return scripted.sessionsMax
      },
      identity: call => this.#step('server.identity', call, [], () => this.#at('kv')),
      unfit: call => this.#step('server.unfit', call, [], () => this.unfit)
    }
  }

  #at(tier: 'kv' | 'bodies'): ServerIdentity {
    const { kv, bodies = kv } = this.server as NonNullable<Options['server']>
    return tier === 'kv' ? kv : bodies
  }

  #sorted(after: BlobKey | undefined): Entry[] {
    const entries = [...this.entries.values()].map(({ entry }) => entry)
    return entries.filter(({ key }) => after === undefined || key > after).sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  #explainWindow(key: BlobKey) {
    const row = this.window.get(key)
    if (row === undefined) return undefined
    const { stagedAt, cancelled } = row
    return { stagedAgoMs: this.clock - stagedAt, dueInMs: stagedAt + this.windowDelayMs - this.clock, cancelled }
  }

  #candidates(epoch: Set<BlobKey> | undefined, after: BlobKey | undefined, limit: number) {
    const page = this.#sorted(after).slice(0, limit)
    const keys: BlobKey[] = []
    const cancelled: BlobKey[] = []
    let [live, alreadyStaged] = [0, 0]
    for (const { key } of page) {
      const row = this.window.get(key)
      const isInEpoch = this.#form === 'inline' && epoch?.has(key)
      if (this.#isPinned(key) || isInEpoch || this.loaded.includes(key)) live++
      else if (row === undefined) keys.push(key)
      else {
        alreadyStaged++
        if (row.cancelled) cancelled.push(key)
      }
    }
    const next = page.length === limit ? page.at(-1)?.key : undefined
    return { scanned: page.length, live, alreadyStaged, cancelled, keys, next }
  }

  #isKnown({ stage, sealed }: Found): boolean {
    if (this.stages.has(stage) || this.trash.has(stage)) return true
    if (sealed === undefined) return false
    const place = this.entries.get(sealed.key)?.entry.place
    return (place?.tier === 'large' && place.locator === sealed.locator) || this.trash.has(sealed.locator)
  }

  #bodies(): BodyStore {
    const run = <T>(step: string, call: Call | undefined, args: readonly unknown[], effect: () => T) =>
      this.#step(step, call, args, effect)
    const scripted = this
    return {
      claimed: call => run('claimed', call, [], () => this.claim),
      claim: (wanted, call) =>
        run('claim', call, [wanted], () => {
          this.claim ??= wanted
          return this.claim
        }),
      reclaim: (expected, next, call) =>
        run('reclaim', call, [expected, next], () => {
          if (this.claim?.poolId !== expected) return false
          this.claim = next
          return true
        }),
      ...(this.#options.server?.bodies && {
        server: {
          identity: (call: Call) => this.#step('bodies.server.identity', call, [], () => this.#at('bodies'))
        }
      }),
      create: (stage, _, call) =>
        run('create', call, [stage], () => {
          this.halves.set(stage, [])
          this.open++
          return this.#writer(stage)
        }),
      read(locator, range, _) {
        return {
          [Symbol.asyncIterator]() {
            return scripted.#reader(locator, range)
          }
        }
      },
      length: (locator, call) => run('length', call, [locator], () => this.bodies.get(locator)?.bytes.length),
      drop: (what, call) =>
        run('drop', call, [what], () =>
          what.map(name => {
            this.bodies.delete(name as Locator)
            this.halves.delete(name as StageId)
            for (const [locator, { stage }] of this.bodies) if (stage === name) this.bodies.delete(locator)
            return { what: name }
          })
        ),
      scan: (after, limit, call) =>
        run('scan', call, [after, limit], () => {
          const sealed = [...this.bodies].map(
            ([locator, { stage, key, bytes }]): Found => ({
              stage,
              sealed: { locator, key, length: bytes.length, whole: true }
            })
          )
          const found: Found[] = [...sealed, ...[...this.halves.keys()].map(stage => ({ stage }))]
          return { found, next: undefined }
        })
    }
  }

  #writer(stage: StageId): BodyWriter {
    let isOpen = true
    let underWay: string | undefined
    const end = () => {
      if (isOpen) this.open--
      isOpen = false
    }
    /** One method at a time, as the contract says core calls them. */
    const alone = async <T>(step: string, args: readonly unknown[], effect: () => T): Promise<T> => {
      if (underWay !== undefined) this.overlaps.push(`${step} during ${underWay}`)
      underWay = step
      try {
        return await this.#step(step, undefined, args, effect)
      } finally {
        underWay = undefined
      }
    }
    return {
      write: chunk =>
        alone('write', [chunk.length], () => {
          if (!isOpen) throw new Error('a write to a writer that has ended')
          this.halves.get(stage)?.push(Uint8Array.from(chunk))
        }),
      seal: key =>
        alone('seal', [key], () => {
          const locator = `${stage}.sealed` as Locator
          this.bodies.set(locator, { stage, key, bytes: Buffer.concat(this.halves.get(stage) ?? []) })
          this.halves.delete(stage)
          end()
          return locator
        }),
      discard: () =>
        alone('writer.discard', [], () => {
          this.halves.delete(stage)
          this.bodies.delete(`${stage}.sealed` as Locator)
          end()
        })
    }
  }

  /** Writer methods that core called while another was under way. */
  readonly overlaps: string[] = []

  #reader(locator: Locator, { start, end }: { start: number; end: number }): AsyncIterator<Uint8Array> {
    let at = start
    let isOpen = false
    const close = () => {
      if (isOpen) this.open--
      isOpen = false
    }
    // Steps queue as those of an async generator do.
    let turn: Promise<unknown> = Promise.resolve()
    const inTurn = <T>(step: () => Promise<T>): Promise<T> => {
      const answer = turn.then(step)
      turn = answer.catch(() => {})
      return answer
    }
    const steps = {
      next: () =>
        this.#step('body.read', undefined, [locator, at], () => {
          const body = this.bodies.get(locator)
          if (body === undefined) throw new EngineFault('gone', 'no such body')
          if (!isOpen) this.open++
          isOpen = true
          const chunk = new Uint8Array(body.bytes.subarray(at, Math.min(at + this.readLength, end)))
          at += chunk.length
          if (chunk.length > 0) return { done: false, value: chunk }
          close()
          return { done: true, value: undefined }
        }) as Promise<IteratorResult<Uint8Array>>,
      return: () =>
        this.#step('body.return', undefined, [locator], () => {
          close()
          return { done: true, value: undefined }
        }) as Promise<IteratorResult<Uint8Array>>
    }
    return { next: () => inTurn(steps.next), return: () => inTurn(steps.return) }
  }

  /** Bytes in one chunk of a body that is read. */
  readLength = 64 * 1024
}

function samePlace(one: Place, other: Place): boolean {
  return one.tier === 'kv' ? other.tier === 'kv' : other.tier === 'large' && other.locator === one.locator
}

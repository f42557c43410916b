/**
 * G1 to G7 of the sweep protocol, as far as a medium and the answers of stores show them: looked at after every step, and once
 * more when everything is over and time has passed.
 */

import type { SweepReport } from '@alkblobs/core'
import type { BlobKey, Locator, StageId } from '@alkblobs/core/engine'
import { stageOf } from './durable/bodies.js'
import { PinLives } from './pin-lives.js'
import type { Hold, Run } from './run.js'
import type { Step } from './world.js'

/** A body's life; it only goes forward. */
const LIFE = ['staged', 'published', 'trashed', 'dropped'] as const
type Stage = (typeof LIFE)[number]

const WINDOW_DELAY = 'the window delay'

export class Invariants {
  readonly #run: Run
  /** What a key's entry was protected by when the last step was over. */
  #before = new Map<BlobKey, readonly string[]>()
  #lives = new Map<StageId, Stage>()
  /** Bodies that a medium lost by itself: nobody's fault. */
  readonly #vanished = new Set<Locator>()
  readonly #pins: PinLives

  constructor(run: Run) {
    this.#run = run
    this.#pins = new PinLives(run)
  }

  begin(): void {
    const { view, bodies } = this.#run.pool
    for (const key of view.keys()) {
      const locator = this.#placeOf(key)
      if (locator !== undefined && !bodies.sealed.has(locator)) this.#vanished.add(locator)
    }
    this.#lives = this.#livesNow()
    this.#pins.follow()
    this.#before = this.#protections()
  }

  /** The part of it that a medium does not show. */
  digest(): string {
    const lives = [...this.#lives].flatMap(([stage, life]) => (life === 'dropped' ? [stage] : [])).sort()
    const guarded = this.#run.guarded.map(({ key, untilMs }) => key + untilMs)
    return `${lives.join()}|${guarded.join()}|${[...this.#vanished].sort().join()}`
  }

  vanished(locators: Iterable<Locator>): void {
    for (const locator of locators) this.#vanished.add(locator)
  }

  /** For a step that was looked at in an earlier walk. */
  follow(): void {
    this.#live()
    this.#pins.follow()
    this.#before = this.#protections()
  }

  after(step: Step): void {
    this.#removals(step)
    for (const hold of this.#run.holds) this.holds(hold)
    for (const key of this.#run.references)
      if (!this.#isThere(key)) this.#broken('S3', 'a referenced entry is gone', key)
    for (const key of this.#run.pool.view.keys()) this.#hasBytes(key)
    this.#live()
    this.#pins.after(step)
    this.#before = this.#protections()
  }

  /** G3: whoever was answered with a pin has the entry, for as long as the pin is held. */
  holds({ who, key, pin }: Hold): void {
    if (pin.held && !this.#isThere(key)) this.#broken('G3', `${who} holds a pin of an entry that is gone`, key)
  }

  /** G3 and S1: whoever was answered by a put has the entry, and the entry its bytes, though others were lost before. */
  answered(who: string, key: BlobKey): void {
    if (!this.#isThere(key)) this.#broken('G3', `${who} was answered, and the entry is not there`, key)
    const locator = this.#placeOf(key)
    const mayVanish = this.#run.configuration.events?.some(({ kind }) => kind === 'bodies vanish')
    if (locator === undefined || mayVanish || this.#run.pool.bodies.sealed.has(locator)) return
    this.#broken('S1', `${who} was answered, and there is no body at ${locator}`, key)
  }

  /** G6, of one report. */
  counts(who: string, report: SweepReport): void {
    const { aborted, scanned, live, candidatesStaged, alreadyStaged, deleted, cancelledByArbitration } = report
    const broken = (what: string) => this.#run.world.violate(`G6: ${who}'s sweep: ${what} ${JSON.stringify(report)}`)
    if (scanned !== live + candidatesStaged + alreadyStaged) broken('scanned is not live + staged + already staged')
    const effects = scanned + deleted + cancelledByArbitration + report.bytesDeleted + report.stagesReclaimed
    if ((aborted === 'SweeperLock' || aborted === 'NoLivenessSources') && effects > 0)
      broken('effects before its first step')
    const isWhole = this.#run.configuration.form === 'inline' && aborted === undefined && this.#run.windowBefore === 0
    if (isWhole && candidatesStaged !== deleted + cancelledByArbitration) broken('staged is not deleted + cancelled')
  }

  /** G5 and G6, when nobody is left, every time is over, and sweeps and maintenance have run. */
  atEnd(isExact: boolean): void {
    const { view, bodies } = this.#run.pool
    const { references } = this.#run
    for (const key of references)
      if (!this.#isThere(key)) this.#broken('S3', 'a referenced entry is gone at the end', key)
    for (const key of view.keys()) {
      if (!references.has(key)) this.#broken('G5', 'an entry that nobody needs is kept for ever', key)
    }
    const { pins, window, marks } = view.counts()
    const left = {
      pins,
      window,
      marks,
      stages: view.stages().length,
      trash: view.trash().length,
      half: bodies.half.size
    }
    for (const [what, count] of Object.entries(left))
      if (count > 0) this.#run.world.violate(`G5: ${count} ${what} left at the end`)
    const places = new Set(view.keys().map(key => this.#placeOf(key)))
    for (const locator of bodies.sealed.keys()) {
      if (!places.has(locator))
        this.#run.world.violate(`G5: the body ${locator} is kept for ever, and nothing knows it`)
    }
    if (isExact) this.#sums()
  }

  /** G6: every candidate ends as deleted or as cancelled, whoever staged it. */
  #sums(): void {
    const sum = { staged: this.#run.windowBefore, ended: 0 }
    for (const { candidatesStaged, deleted, cancelledByArbitration } of this.#run.reports) {
      sum.staged += candidatesStaged
      sum.ended += deleted + cancelledByArbitration
    }
    if (sum.staged !== sum.ended)
      this.#run.world.violate(`G6: ${sum.staged} candidates were staged, ${sum.ended} ended`)
  }

  /** G1 and G2: entries end by `remove` alone, and never under a pin, a reference or a window delay that protects them. */
  #removals(step: Step): void {
    for (const [key, protections] of this.#before) {
      if (this.#run.pool.view.entry(key) !== undefined) continue
      if (!step.label.startsWith('remove ')) this.#broken('G1', `${step.label} ended an entry`, key)
      for (const protection of protections) {
        // Nothing but a pin or a reference promises anything against a delete that somebody asked for.
        if (protection === WINDOW_DELAY && this.#run.hasDeletes) continue
        this.#broken('G2', `${step.label}, protected by ${protection}`, key)
      }
    }
  }

  #protections(): Map<BlobKey, readonly string[]> {
    const { pool, references, guarded, world } = this.#run
    const protections = new Map<BlobKey, readonly string[]>()
    for (const key of pool.view.keys()) {
      const by = pool.view.pinnedBy(key).map(owner => `the pin of ${owner}`)
      if (references.has(key)) by.push('a reference')
      if (guarded.some(other => other.key === key && other.untilMs > world.clockMs)) by.push(WINDOW_DELAY)
      protections.set(key, by)
    }
    return protections
  }

  #placeOf(key: BlobKey): Locator | undefined {
    const place = this.#run.pool.view.entry(key)?.entry.place
    return place?.tier === 'large' ? place.locator : undefined
  }

  #isThere(key: BlobKey): boolean {
    return this.#run.pool.view.entry(key) !== undefined
  }

  /** S1: an entry has its bytes, whole, where it says. */
  #hasBytes(key: BlobKey): void {
    const { view, bodies } = this.#run.pool
    const { entry, body } = view.entry(key) ?? {}
    if (entry === undefined) return
    if (entry.place.tier === 'kv') {
      if (body?.length !== entry.length) this.#broken('S1', 'an entry without its bytes', key)
      return
    }
    const { locator } = entry.place
    const held = bodies.sealed.get(locator)
    if (this.#vanished.has(locator) && held === undefined) return
    if (held?.key !== key || held.bytes.length !== entry.length) this.#broken('S1', `no body at ${locator}`, key)
  }

  /** G7, and the life of every body: published once at most, and never again after it was in trash. */
  #live(): void {
    const now = this.#livesNow()
    for (const [stage, was] of this.#lives) {
      const life = now.get(stage) ?? 'dropped'
      now.set(stage, life)
      // A body that nothing knew any more is found by the scan, and goes the same way once more.
      const isOrphan = was === 'dropped' && life === 'trashed'
      const skips = life === 'dropped' && (was === 'staged' || was === 'published')
      if (LIFE.indexOf(life) < LIFE.indexOf(was) && !isOrphan) this.#body(stage, `was ${was} and is ${life}`)
      if (skips) this.#body(stage, `was ${was} and is named nowhere`)
      if (was === 'trashed' && life === 'dropped') this.#isDropped(stage)
    }
    this.#lives = now
  }

  /** The trash row goes last. Only a writer that is late may have made something after the drop. */
  #isDropped(stage: StageId): void {
    const { pool, configuration } = this.#run
    if (configuration.mayFail === true) return
    const isHeld = pool.bodies.half.has(stage) || [...pool.bodies.sealed.values()].some(body => body.stage === stage)
    if (isHeld) this.#body(stage, 'is in no trash any more, and its bytes are there')
  }

  #livesNow(): Map<StageId, Stage> {
    const { view } = this.#run.pool
    const lives = new Map<StageId, Stage>(view.stages().map(stage => [stage, 'staged']))
    const enter = (what: Locator | StageId, life: Stage) => {
      const stage = stageOf(what)
      const other = lives.get(stage)
      if (other !== undefined && other !== life) this.#body(stage, `is ${other} and ${life} at once`)
      lives.set(stage, life)
    }
    for (const key of view.keys()) {
      const locator = this.#placeOf(key)
      if (locator !== undefined) enter(locator, 'published')
    }
    for (const what of view.trash()) enter(what, 'trashed')
    return lives
  }

  #body(stage: StageId, what: string): void {
    this.#run.world.violate(`G7: the body of stage ${stage} ${what}`)
  }

  #broken(rule: string, what: string, key: BlobKey): void {
    this.#run.world.violate(`${rule}: ${what} (${key})`)
  }
}

/** What instances do: the operations of a store as an application uses them, with what it may rely on afterwards. */
import { GcRefusedError, isBlobError, type Pin } from '@alkblobs/core'
import { bytesOf, type Content, type Operation } from './configuration.js'
import type { Actor, Hold } from './run.js'

interface PutHow {
  /** Writes a reference under the pin before it lets go. */
  readonly refers?: boolean
  /** Holds the pin to the end. */
  readonly keeps?: boolean
  /** Comes in chunks, so that the key is known only when the body is written. */
  readonly streams?: boolean
  /** Relies on the window delay alone. */
  readonly unpinned?: boolean
}

export function put(content: Content, how: PutHow = {}): Operation {
  const { refers = false, keeps = false, streams = false, unpinned = false } = how
  const ways = Object.entries({ refers, keeps, streams, unpinned }).flatMap(([way, is]) => (is ? [way] : []))
  return {
    name: ['put', content, ...ways].join(' '),
    uses: refers ? ['references'] : [],
    run: attempt(`put ${content}`, async actor => {
      const { configuration } = actor.run
      const bytes = bytesOf(content, configuration.large === true)
      const receipt = await actor.store.put(streams ? inChunks(bytes) : bytes, { pin: !unpinned })
      actor.note(`put of ${content} answered: ${receipt.created ? 'created' : 'found'}`)
      // An entry may be taken again before the put hears of it, where no pin holds it any more.
      if (receipt.pin?.held ?? !actor.run.hasDeletes) actor.run.invariants.answered(actor.who, receipt.key)
      if (receipt.pin !== undefined) await useUnderPin(actor, content, receipt.pin, how)
      else guard(actor, content, configuration.windowDelayMs ?? 0)
    })
  }
}

/** Pins an entry that exists, and lets go at once, or after a reference was written, or never. */
export function pin(content: Content, how: Pick<PutHow, 'refers' | 'keeps'> = {}): Operation {
  const ways = [how.refers ? ['refers'] : [], how.keeps ? ['keeps'] : []].flat()
  return {
    name: ['pin', content, ...ways].join(' '),
    uses: how.refers ? ['references'] : [],
    run: attempt(`pin ${content}`, async actor => {
      const held = await actor.store.pin(actor.run.keyOf(content))
      actor.note(`pin of ${content} answered: ${held === undefined ? 'absent' : 'held'}`)
      if (held !== undefined) await useUnderPin(actor, content, held, how)
    })
  }
}

/** A reference counts if the pin is held once it is durable; else the application takes it back. */
async function useUnderPin(actor: Actor, content: Content, held: Pin, { refers, keeps }: PutHow): Promise<void> {
  const { run, who } = actor
  const hold: Hold = { who, key: held.key, pin: held, isLost: false }
  run.invariants.holds(hold)
  run.holds.add(hold)
  if (refers === true) {
    await actor.step(`writes a reference to ${content}`, { writes: ['references'] }, () => {
      if (held.held) run.references.add(held.key)
      else actor.note('the pin is not held any more: the reference is taken back')
    })
  }
  if (keeps === true) return
  run.holds.delete(hold)
  await held.release()
}

function guard({ run }: Actor, content: Content, windowDelayMs: number): void {
  const guarded = { key: run.keyOf(content), untilMs: run.world.clockMs + windowDelayMs }
  run.guarded.push(guarded)
}

/** The application needs it no more. */
export function forget(content: Content): Operation {
  return {
    name: `forget ${content}`,
    uses: ['references'],
    run: actor =>
      actor.step(`drops its reference to ${content}`, { writes: ['references'] }, () => {
        actor.run.references.delete(actor.run.keyOf(content))
      })
  }
}

export function remove(content: Content): Operation {
  return {
    name: `delete ${content}`,
    uses: ['deletes'],
    run: attempt(`delete ${content}`, async actor => {
      const answer = await actor.store.delete(actor.run.keyOf(content)).catch(error => {
        if (error instanceof GcRefusedError) return error.reason
        throw error
      })
      actor.note(`delete of ${content} answered: ${answer}`)
    })
  }
}

export function sweep(): Operation {
  return {
    name: 'sweep',
    uses: ['lease'],
    run: attempt('sweep', async actor => {
      const report = await actor.store.sweep()
      const { aborted, scanned, candidatesStaged, deleted, cancelledByArbitration, cause } = report
      const counts = `scanned ${scanned}, staged ${candidatesStaged}, deleted ${deleted}, cancelled ${cancelledByArbitration}`
      actor.note(`sweep answered: ${aborted === undefined ? '' : `${aborted}${cause ? ` (${cause})` : ''}, `}${counts}`)
      actor.run.reports.push(report)
      actor.run.invariants.counts(actor.who, report)
    })
  }
}

export function maintain(scan = true): Operation {
  return {
    name: scan ? 'maintain' : 'maintain without a scan',
    uses: ['lease', 'leavings'],
    run: attempt('maintain', async actor => {
      const { aborted, pinsReaped, stagesReclaimed, dropped, orphans } = await actor.store.maintain({ scan })
      const counts = `${pinsReaped} pins, ${stagesReclaimed} stages, ${dropped} dropped, ${orphans} orphans`
      actor.note(`maintain answered: ${aborted ?? counts}`)
    })
  }
}

export function repair(): Operation {
  return {
    name: 'repair',
    uses: ['leavings'],
    run: attempt('repair', async actor => {
      const { corrupt, dangling, repaired, kept } = await actor.store.verify({ repair: true })
      actor.note(`verify answered: ${dangling.length} dangling, ${repaired.length} repaired, ${kept.length} kept`)
      if (corrupt.length > 0) actor.run.world.violate(`S1: verify calls ${corrupt.map(({ key }) => key)} corrupt`)
    })
  }
}

/** The medium loses every large body. */
export function vanish(): Operation {
  return {
    name: 'every large body vanishes',
    uses: ['leavings'],
    run: async ({ run }) => run.pool.bodies.sealed.clear()
  }
}

/** The instance's renewal comes round. */
export function renew(): Operation {
  return {
    name: 'renew',
    run: actor =>
      actor.step('renewal comes round', {}, () => {
        actor.run.world.tick(actor.who, 'long')
      })
  }
}

/** Runs an operation; a failure is a finding unless the configuration takes something from it. */
function attempt(name: string, run: (actor: Actor) => Promise<void>): (actor: Actor) => Promise<void> {
  return async actor => {
    try {
      await run(actor)
    } catch (error) {
      actor.note(`${name} failed: ${error instanceof Error ? error.message : error}`)
      if (actor.run.configuration.mayFail === true && isBlobError(error)) return
      actor.run.world.violate(`${actor.who}: ${name} failed: ${error instanceof Error ? error.stack : error}`)
    }
  }
}

async function* inChunks(bytes: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array> {
  yield bytes
}

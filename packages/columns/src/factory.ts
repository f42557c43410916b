/**
 * Makes a factory from the description of a column. It keeps every store and site it made until the teardown, which
 * closes and removes exactly those, open, closed or abandoned.
 */
import {
  type EngineSummary,
  type MediumOracle,
  type OpenTuning,
  type StoreFactory,
  summaryOf,
  type Trait
} from '@alkblobs/conformance'
import { type FleetOptions, openStore, type Store } from '@alkblobs/core'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { sharedServer } from '@alkblobs/testkit'
import { type OraclePart, oracleOver } from './oracles/part.js'
import { makeSite, type Site } from './site.js'

/** The media of one pool: engines that open them, and the parts of an oracle over them. */
export interface Media extends Engines {
  readonly oracle: readonly OraclePart[]
  /** The engines of the nth store over the same media, where its sessions are to be told from those of others; the first is 1. */
  instance?(nth: number): Engines
  /** Ends the sessions of the nth store. */
  endSessions?(nth: number): Promise<void>
  /** Copies the media, which no store has open, to a site of their own. */
  copy?(site: Site): Promise<Media>
}

interface Engines {
  readonly kv: EngineDefinition
  readonly large?: EngineDefinition
}

/** A column as it is written down. */
export interface ColumnDraft {
  readonly name: string
  readonly traits: readonly Trait[]
  readonly threshold?: number
  /** Whether its media are on the server of the tests, so that it is skipped where there is none. */
  readonly needsServer?: boolean
  /** How its stores take part in a fleet. */
  readonly fleet?: FleetOptions
  /** New media on a site of their own; with `largeSite`, over the large medium of that one. */
  media(site: Site, largeSite?: Site): Media | Promise<Media>
  /** The same with the large medium on another server. */
  apart?(site: Site): Promise<Media>
}

/** A factory that knows what it needs of the machine. */
export interface ColumnFactory extends StoreFactory {
  readonly needsServer: boolean
}

/** Where a factory makes its sites. */
export interface Place {
  /** Default: the system's temporary folder. */
  readonly below?: string
}

/** The engines whose medium is on the server of the tests. */
const ON_SERVER: ReadonlySet<string> = new Set(['postgres', 'pglo'])

/** Longest wait for an abandoned store to close: a row that failed may have left an engine call waiting for ever. */
const CLOSE_WAIT_MS = 2_000

interface Opened {
  readonly media: Media
  readonly site: Site
  /** Where its large medium is: on a site of somebody else in a pool that was handed it. */
  readonly largeSite: Site
  readonly tuning: OpenTuning
  /** Which of the stores over these media it is. */
  readonly nth: number
}

async function closeAbandoned(store: Store): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, CLOSE_WAIT_MS)
  })
  // What an abandoned store cannot close by itself goes with its folder; the row has failed already.
  await Promise.race([store.close().catch(() => {}), late])
  clearTimeout(timer)
}

async function openOn(
  { kv, large }: Engines,
  { threshold, fleet }: ColumnDraft,
  { wrap = definition => definition, ...tuning }: OpenTuning
): Promise<Store> {
  return await openStore({
    ...(threshold === undefined ? {} : { threshold }),
    ...(fleet === undefined ? {} : { fleet }),
    windowDelayMs: 0,
    trashDelayMs: 0,
    ...tuning,
    kv: wrap(kv),
    ...(large === undefined ? {} : { large: wrap(large) })
  })
}

/** The engines of a column, asked on media that are removed at once. */
async function enginesOf(draft: ColumnDraft, { below }: Place): Promise<readonly EngineSummary[]> {
  const site = await makeSite(below)
  try {
    const { kv, large } = await draft.media(site)
    const engines = await Promise.all([kv, ...(large === undefined ? [] : [large])].map(summaryOf))
    if (draft.needsServer !== true) return engines
    const server = `PostgreSQL ${(await sharedServer()).version}`
    return engines.map(engine => (ON_SERVER.has(engine.name) ? { ...engine, server } : engine))
  } finally {
    await site.remove()
  }
}

/** What one factory has made and not yet torn down. */
class Made {
  readonly #draft: ColumnDraft
  readonly #place: Place
  readonly #stores = new Map<Store, Opened>()
  readonly #sites = new Set<Site>()
  readonly #counts = new WeakMap<Media, number>()

  constructor(draft: ColumnDraft, place: Place) {
    this.#draft = draft
    this.#place = place
  }

  async open({ media, tuning, ...place }: Omit<Opened, 'nth'>): Promise<Store> {
    const nth = (this.#counts.get(media) ?? 0) + 1
    this.#counts.set(media, nth)
    const store = await openOn(media.instance?.(nth) ?? media, this.#draft, tuning)
    this.#stores.set(store, { media, tuning, ...place, nth })
    return store
  }

  async site(): Promise<Site> {
    const site = await makeSite(this.#place.below)
    this.#sites.add(site)
    return site
  }

  opened(store: Store): Opened {
    const found = this.#stores.get(store)
    if (found === undefined) throw new Error(`${this.#draft.name} did not open that store, or has torn it down`)
    return found
  }

  async closeAllOver(media: Media): Promise<void> {
    await Promise.all([...this.#stores].map(([each, opened]) => (opened.media === media ? each.close() : undefined)))
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#stores.keys()].map(closeAbandoned))
    this.#stores.clear()
    await Promise.all([...this.#sites].map(site => site.remove()))
    this.#sites.clear()
  }
}

/** Every way to open a store that any column has. */
function waysOf(draft: ColumnDraft, made: Made) {
  const again = (opened: Opened, tuning: OpenTuning | undefined) =>
    made.open({ ...opened, tuning: tuning ?? withoutWrap(opened.tuning) })
  return {
    async open(tuning = {}) {
      const site = await made.site()
      return await made.open({ media: await draft.media(site), site, largeSite: site, tuning })
    },
    async second(store, tuning) {
      return await again(made.opened(store), tuning)
    },
    async reopen(store, tuning) {
      const opened = made.opened(store)
      await store.close()
      return await again(opened, tuning)
    },
    async foreign(store, tuning = {}) {
      const { largeSite } = made.opened(store)
      const site = await made.site()
      return await made.open({ media: await draft.media(site, largeSite), site, largeSite, tuning })
    },
    async apart(tuning = {}) {
      const site = await made.site()
      return await made.open({ media: await promised(draft.apart)(site), site, largeSite: site, tuning })
    },
    async copy(store, tuning = {}) {
      const { media } = made.opened(store)
      await made.closeAllOver(media)
      const site = await made.site()
      return await made.open({ media: await promised(media.copy)(site), site, largeSite: site, tuning })
    }
  } satisfies Partial<StoreFactory>
}

/** A factory over the column. Each call of `factoryOf` answers one that knows nothing of others. */
export function factoryOf(draft: ColumnDraft, place: Place = {}): ColumnFactory {
  const made = new Made(draft, place)
  const { open, second, reopen, foreign, apart, copy } = waysOf(draft, made)
  const has = (trait: Trait) => draft.traits.includes(trait)
  return {
    name: draft.name,
    traits: draft.traits,
    threshold: draft.threshold,
    needsServer: draft.needsServer ?? false,
    open,
    // What a column cannot do is not there: a row that forgot to say what it needs fails instead of finding it half done.
    ...(has('second') ? { second } : {}),
    ...(has('reopen') ? { reopen } : {}),
    ...(has('foreign') ? { foreign } : {}),
    ...(has('two-servers') ? { apart } : {}),
    ...(has('copy') ? { copy } : {}),
    engines: () => enginesOf(draft, place),
    medium(store): MediumOracle {
      const { media, nth } = made.opened(store)
      const { endSessions } = media
      return { ...oracleOver(media.oracle), ...(endSessions && { endSessions: () => endSessions(nth) }) }
    },
    teardown: () => made.remove()
  }
}

/** What a trait promises is there. */
function promised<T>(made: T | undefined): T {
  if (made === undefined) throw new Error('the column promises what it has not')
  return made
}

/** Another instance has its own view of the engines: what a row hung into the first does not count for it. */
function withoutWrap({ wrap: _, ...tuning }: OpenTuning): OpenTuning {
  return tuning
}

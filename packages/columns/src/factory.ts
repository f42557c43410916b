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

/** Longest wait for an abandoned store to close: a row that failed may have left an engine call waiting for ever. */
const CLOSE_WAIT_MS = 2_000

interface Opened {
  readonly media: Media
  readonly site: Site
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
    return await Promise.all([kv, ...(large === undefined ? [] : [large])].map(summaryOf))
  } finally {
    await site.remove()
  }
}

/** A factory over the column. Each call of `factoryOf` answers one that knows nothing of others. */
export function factoryOf(draft: ColumnDraft, place: Place = {}): ColumnFactory {
  const stores = new Map<Store, Opened>()
  const sites = new Set<Site>()
  const opened = new WeakMap<Media, number>()

  const openIn = async (site: Site, media: Media, tuning: OpenTuning): Promise<Store> => {
    const nth = (opened.get(media) ?? 0) + 1
    opened.set(media, nth)
    const store = await openOn(media.instance?.(nth) ?? media, draft, tuning)
    stores.set(store, { media, site, tuning, nth })
    return store
  }
  const freshSite = async () => {
    const site = await makeSite(place.below)
    sites.add(site)
    return site
  }
  const openedAs = (store: Store): Opened => {
    const found = stores.get(store)
    if (found === undefined) throw new Error(`${draft.name} did not open that store, or has torn it down`)
    return found
  }
  const open: StoreFactory['open'] = async (tuning = {}) => {
    const site = await freshSite()
    return await openIn(site, await draft.media(site), tuning)
  }
  const closeOver = async (media: Media) => {
    await Promise.all([...stores].map(([store, { media: over }]) => (over === media ? store.close() : undefined)))
  }
  const medium = (store: Store): MediumOracle => {
    const { media, nth } = openedAs(store)
    const { endSessions } = media
    return { ...oracleOver(media.oracle), ...(endSessions && { endSessions: () => endSessions(nth) }) }
  }
  return {
    name: draft.name,
    traits: draft.traits,
    threshold: draft.threshold,
    needsServer: draft.needsServer ?? false,
    open,
    ...othersOf(draft, { openIn, freshSite, openedAs, closeOver }),
    engines: () => enginesOf(draft, place),
    medium,
    async teardown() {
      await Promise.all([...stores.keys()].map(closeAbandoned))
      stores.clear()
      await Promise.all([...sites].map(site => site.remove()))
      sites.clear()
    }
  }
}

/** How a factory keeps what it makes. */
interface Keeping {
  openIn(site: Site, media: Media, tuning: OpenTuning): Promise<Store>
  freshSite(): Promise<Site>
  openedAs(store: Store): Opened
  closeOver(media: Media): Promise<void>
}

/** Further ways to a store. What a column cannot do is not there: a row that forgot to say what it needs fails instead of finding it half done. */
function othersOf(draft: ColumnDraft, { openIn, freshSite, openedAs, closeOver }: Keeping): Partial<StoreFactory> {
  const second: StoreFactory['second'] = async (store, tuning) => {
    const { site, media, tuning: before } = openedAs(store)
    return await openIn(site, media, tuning ?? withoutWrap(before))
  }
  const reopen: StoreFactory['reopen'] = async (store, tuning) => {
    const { site, media, tuning: before } = openedAs(store)
    await store.close()
    return await openIn(site, media, tuning ?? withoutWrap(before))
  }
  const foreign: StoreFactory['foreign'] = async (store, tuning = {}) => {
    const site = await freshSite()
    return await openIn(site, await draft.media(site, openedAs(store).site), tuning)
  }
  const apart: StoreFactory['apart'] = async (tuning = {}) => {
    const site = await freshSite()
    return await openIn(site, await promised(draft.apart)(site), tuning)
  }
  const copy: StoreFactory['copy'] = async (store, tuning = {}) => {
    const { media } = openedAs(store)
    await closeOver(media)
    const site = await freshSite()
    return await openIn(site, await promised(media.copy)(site), tuning)
  }
  const has = (trait: Trait) => draft.traits.includes(trait)
  return {
    ...(has('second') ? { second } : {}),
    ...(has('reopen') ? { reopen } : {}),
    ...(has('foreign') ? { foreign } : {}),
    ...(has('two-servers') ? { apart } : {}),
    ...(has('copy') ? { copy } : {})
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

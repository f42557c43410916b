/**
 * Makes a factory from the description of a column. It keeps every store and folder it made until the teardown, which
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
import { openStore, type Store } from '@alkblobs/core'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { type OraclePart, oracleOver } from './oracles/part.js'
import { makeFolder, removeFolder } from './site.js'

/** The media of one pool: engines that open them, and the parts of an oracle over them. */
export interface Media {
  readonly kv: EngineDefinition
  readonly large?: EngineDefinition
  readonly oracle: readonly OraclePart[]
}

/** A column as it is written down. */
export interface ColumnDraft {
  readonly name: string
  readonly traits: readonly Trait[]
  readonly threshold?: number
  /** New media in a folder of their own; with `large`, over the large medium of the other folder. */
  media(folder: string, largeFolder?: string): Media
}

/** Where a factory makes its folders. */
export interface Place {
  /** Default: the system's temporary folder. */
  readonly below?: string
}

/** Longest wait for an abandoned store to close: a row that failed may have left an engine call waiting for ever. */
const CLOSE_WAIT_MS = 2_000

interface Opened {
  readonly media: Media
  readonly folder: string
  readonly tuning: OpenTuning
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
  media: Media,
  draft: ColumnDraft,
  { wrap = definition => definition, ...tuning }: OpenTuning
): Promise<Store> {
  return await openStore({
    ...(draft.threshold === undefined ? {} : { threshold: draft.threshold }),
    windowDelayMs: 0,
    trashDelayMs: 0,
    ...tuning,
    kv: wrap(media.kv),
    ...(media.large === undefined ? {} : { large: wrap(media.large) })
  })
}

/** The engines of a column, asked on media that are removed at once. */
async function enginesOf(draft: ColumnDraft, { below }: Place): Promise<readonly EngineSummary[]> {
  const folder = await makeFolder(below)
  try {
    const { kv, large } = draft.media(folder)
    return await Promise.all([kv, ...(large === undefined ? [] : [large])].map(summaryOf))
  } finally {
    await removeFolder(folder)
  }
}

/** A factory over the column. Each call of `factoryOf` answers one that knows nothing of others. */
export function factoryOf(draft: ColumnDraft, place: Place = {}): StoreFactory {
  const stores = new Map<Store, Opened>()
  const folders = new Set<string>()

  const openIn = async (folder: string, media: Media, tuning: OpenTuning): Promise<Store> => {
    const store = await openOn(media, draft, tuning)
    stores.set(store, { media, folder, tuning })
    return store
  }
  const freshFolder = async () => {
    const folder = await makeFolder(place.below)
    folders.add(folder)
    return folder
  }
  const openedAs = (store: Store): Opened => {
    const opened = stores.get(store)
    if (opened === undefined) throw new Error(`${draft.name} did not open that store, or has torn it down`)
    return opened
  }
  const has = (trait: Trait) => draft.traits.includes(trait)
  const open: StoreFactory['open'] = async (tuning = {}) => {
    const folder = await freshFolder()
    return await openIn(folder, draft.media(folder), tuning)
  }
  const second: StoreFactory['second'] = async (store, tuning) => {
    const { folder, media, tuning: before } = openedAs(store)
    return await openIn(folder, media, tuning ?? withoutWrap(before))
  }
  const reopen: StoreFactory['reopen'] = async (store, tuning) => {
    const { folder, media, tuning: before } = openedAs(store)
    await store.close()
    return await openIn(folder, media, tuning ?? withoutWrap(before))
  }
  const foreign: StoreFactory['foreign'] = async (store, tuning = {}) => {
    const folder = await freshFolder()
    return await openIn(folder, draft.media(folder, openedAs(store).folder), tuning)
  }
  return {
    name: draft.name,
    traits: draft.traits,
    threshold: draft.threshold,
    open,
    // What a column cannot do is not there: a row that forgot to say what it needs fails instead of finding it half done.
    ...(has('second') ? { second } : {}),
    ...(has('reopen') ? { reopen } : {}),
    ...(has('foreign') ? { foreign } : {}),
    engines: () => enginesOf(draft, place),
    medium: (store): MediumOracle => oracleOver(openedAs(store).media.oracle),
    async teardown() {
      await Promise.all([...stores.keys()].map(closeAbandoned))
      stores.clear()
      await Promise.all([...folders].map(removeFolder))
      folders.clear()
    }
  }
}

/** Another instance has its own view of the engines: what a row hung into the first does not count for it. */
function withoutWrap({ wrap: _, ...tuning }: OpenTuning): OpenTuning {
  return tuning
}

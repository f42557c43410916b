/** The durable form in memory is what it stands for: it passes the rows that every engine passes. */
import { fileURLToPath } from 'node:url'
import { type MediumOracle, type OpenTuning, rows, type StoreFactory, summaryOf } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { openStore, type Store } from '@alkblobs/core'
import type { BlobKey, EngineDefinition } from '@alkblobs/core/engine'
import { Bodies, BodyMedium } from '../src/durable/bodies.js'
import { catalogOf } from '../src/durable/catalog.js'
import { definitionOf } from '../src/durable/engine.js'
import { DurableMedium } from '../src/durable/medium.js'
import { Rules } from '../src/durable/rules.js'

const THRESHOLD = 3000

interface Media {
  readonly rows: DurableMedium
  readonly bodies: BodyMedium
}

let minted = 0

function enginesOf({ rows: medium, bodies }: Media): { kv: EngineDefinition; large: EngineDefinition } {
  const mint = () => `mark ${++minted}`
  return {
    kv: definitionOf('durable', { catalog: catalogOf(new Rules(medium), mint) }),
    large: definitionOf('bodies', { bodies: new Bodies(bodies) })
  }
}

function oracleOf({ rows: medium, bodies }: Media): MediumOracle {
  const { entries, stages, trash, window, pins } = medium
  return {
    counts: async () => ({
      inlineEntries: [...entries.values()].filter(({ entry }) => entry.place.tier === 'kv').length,
      bodies: bodies.sealed.size,
      stages: Math.max(stages.size, bodies.half.size),
      trash: trash.size,
      window: window.size,
      pins: [...pins.values()].reduce((total, owners) => total + owners.size, 0)
    }),
    exists: async () => medium.record !== undefined || bodies.claim !== undefined,
    async age(byMs) {
      for (const [key, row] of window) window.set(key, { ...row, stagedAt: row.stagedAt - byMs })
      for (const [stage, expiresAt] of stages) stages.set(stage, expiresAt - byMs)
      for (const [what, row] of trash) trash.set(what, { ...row, notBefore: row.notBefore - byMs })
      for (const owners of pins.values()) {
        for (const [owner, row] of owners) owners.set(owner, { ...row, expiresAt: row.expiresAt - byMs })
      }
    },
    async expirePins(key?: BlobKey) {
      for (const [pinned, owners] of pins) {
        if (key !== undefined && pinned !== key) continue
        for (const [owner, row] of owners) owners.set(owner, { ...row, expiresAt: 0 })
      }
    }
  }
}

function factory(): StoreFactory {
  const opened = new Map<Store, Media>()
  const open = async (media: Media, { wrap = definition => definition, ...tuning }: OpenTuning = {}) => {
    const { kv, large } = enginesOf(media)
    const delays = { windowDelayMs: 0, trashDelayMs: 0 }
    const store = await openStore({ threshold: THRESHOLD, ...delays, ...tuning, kv: wrap(kv), large: wrap(large) })
    opened.set(store, media)
    return store
  }
  const mediaOf = (store: Store) => opened.get(store) as Media
  return {
    name: 'explorer: durable + bodies',
    traits: ['dual-tier', 'durable', 'second', 'reopen', 'foreign', 'medium', 'age'],
    threshold: THRESHOLD,
    engines: async () => {
      const { kv, large } = enginesOf({ rows: new DurableMedium(), bodies: new BodyMedium() })
      return [await summaryOf(kv), await summaryOf(large)]
    },
    open: tuning => open({ rows: new DurableMedium(), bodies: new BodyMedium() }, tuning),
    second: (store, tuning) => open(mediaOf(store), tuning),
    async reopen(store, tuning) {
      await store.close()
      return await open(mediaOf(store), tuning)
    },
    foreign: (store, tuning) => open({ rows: new DurableMedium(), bodies: mediaOf(store).bodies }, tuning),
    medium: store => oracleOf(mediaOf(store)),
    async teardown() {
      await Promise.all([...opened.keys()].map(store => store.close()))
      opened.clear()
    }
  }
}

// A column of its own, in no report: it says nothing of what ships.
describeColumn(factory(), rows, { folder: fileURLToPath(new URL('../test-results/conformance', import.meta.url)) })

/** Engines that are wrong in one way each, to try a suite on. Each is a wrapper around any engine, and names the rows that catch it. */
import type { PlantedFault } from './fault.js'
import { forgetsToCancel } from './forgets-to-cancel.js'
import { givesItsOwnMemory } from './gives-its-own-memory.js'
import { ignoresHealing } from './ignores-healing.js'
import { keepsADiscardedStage } from './keeps-a-discarded-stage.js'
import { keepsAView } from './keeps-a-view.js'
import { leaksAReader } from './leaks-a-reader.js'
import { leasesTwice } from './leases-twice.js'
import { mapsFailureToAbsence } from './maps-failure-to-absence.js'
import { publishesBeside } from './publishes-beside.js'
import { publishesTooEarly } from './publishes-too-early.js'
import { releasesAnyGeneration } from './releases-any-generation.js'
import { remembersWhatItRead } from './remembers-what-it-read.js'
import { skipsAKey } from './skips-a-key.js'
import { unclampedRange } from './unclamped-range.js'

export { type PlantedFault, planted } from './fault.js'

/** Every planted fault. */
export const faults: readonly PlantedFault[] = [
  forgetsToCancel,
  publishesTooEarly,
  publishesBeside,
  skipsAKey,
  mapsFailureToAbsence,
  keepsADiscardedStage,
  unclampedRange,
  ignoresHealing,
  releasesAnyGeneration,
  leasesTwice,
  leaksAReader,
  givesItsOwnMemory,
  keepsAView,
  remembersWhatItRead
]

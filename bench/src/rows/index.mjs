/** All rows, in the order in which they run: what leaves many small files behind comes late. */
import { dedupLarge, dedupSmall } from './dedup.mjs'
import { eventLoop } from './event-loop.mjs'
import { getSmall } from './get-small.mjs'
import { growthEntries } from './growth-entries.mjs'
import { growthFlight } from './growth-flight.mjs'
import { growthLengths } from './growth-lengths.mjs'
import { memory } from './memory.mjs'
import { open } from './open.mjs'
import { pgFleet, pgRenew } from './pg-fleet.mjs'
import { pgGrowth } from './pg-growth.mjs'
import { pgMemory } from './pg-memory.mjs'
import { pgGet, pgPut } from './pg-small.mjs'
import { pgloGet, pgloPut } from './pg-streams.mjs'
import { pgSweepScale, pgSweepSql } from './pg-sweep.mjs'
import { processor } from './processor.mjs'
import { putSmallConcurrent } from './put-small-concurrent.mjs'
import { putSmallSerial } from './put-small-serial.mjs'
import { range } from './range.mjs'
import { getStream, putStream } from './streams.mjs'
import { sweepScale } from './sweep-scale.mjs'

/**
 * A row is `{ id, needs?, unit, titleOf(bench), contestants(bench), ratiosOf(bench) }`. A contestant is `{ id, name, note, run }`: `note` says what it
 * leaves out, `run` answers its figure. A ratio is `{ id, value(round), atLeast | atMost, against }`. A row that
 * `needs` a flag of the command line runs with it; `seriesOf(bench)` says which figures are the points of a chart.
 */
export const rows = [
  putSmallConcurrent,
  putSmallSerial,
  getSmall,
  dedupSmall,
  dedupLarge,
  putStream,
  getStream,
  range,
  sweepScale,
  open,
  eventLoop,
  memory,
  growthEntries,
  growthLengths,
  growthFlight,
  processor,
  pgPut,
  pgGet,
  pgloPut,
  pgloGet,
  pgSweepScale,
  pgSweepSql,
  pgFleet,
  pgRenew,
  pgMemory,
  pgGrowth
]

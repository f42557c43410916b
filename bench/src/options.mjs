/** What the command line may say, and how much work each form of a run does. */
import { parseArgs } from 'node:util'

const KIB = 1024
const MIB = 1024 * KIB

export const usage = `npm run bench -- [options]

  --quick          less of everything, under 50 seconds: to look at while working
  --million        the sweep at 1,000,000 entries as well, and growth up to there and to 1 GiB (minutes)
  --growth         all rows, with those of how cost grows, of which the charts are made, and of processor time
  --postgres      the rows of PostgreSQL as well, on a server that the run starts
  --only <ids>     some rows only, separated by commas
  --rounds <n>     rounds that count
  --json <file>    write { "ratios": [{ "id", "value", "goal", "pass", ... }], "series": [...] }
  --dir <folder>   where to write; default: a folder in bench/.cache, on the disk of the workspace
  --keep           leave what was written
`

const FULL = {
  name: 'full',
  rounds: 7,
  small: { count: 4_096, lead: 512, peerCount: 512, serialCount: 1_024, serialWarmCount: 4_096, getCount: 16_384 },
  streamLength: 256 * MIB,
  streamRounds: 5,
  ranges: 8_192,
  memoryLength: 1024 * MIB,
  sweepEntries: [100_000],
  growthEntries: [10_000, 100_000],
  growthLengths: [1, KIB, 16 * KIB, 128 * KIB, MIB, 16 * MIB, 256 * MIB],
  openRounds: 11,
  pg: {
    count: 4_096,
    warmRounds: 5,
    lead: 512,
    getCount: 16_384,
    getFrom: 4_096,
    pins: 10_000,
    streamLength: 256 * MIB
  }
}

const QUICK = {
  ...FULL,
  name: 'quick',
  rounds: 3,
  small: { count: 1_024, lead: 256, peerCount: 192, serialCount: 256, serialWarmCount: 2_048, getCount: 4_096 },
  streamLength: 32 * MIB,
  streamRounds: 3,
  ranges: 4_096,
  memoryLength: 128 * MIB,
  sweepEntries: [20_000],
  growthEntries: [1_000, 10_000],
  growthLengths: [1, KIB, 16 * KIB, 128 * KIB, MIB, 16 * MIB],
  openRounds: 3,
  pg: { count: 1_024, warmRounds: 1, lead: 128, getCount: 4_096, getFrom: 1_024, pins: 2_000, streamLength: 16 * MIB }
}

const SPECIFICATION = {
  quick: { type: 'boolean', default: false },
  million: { type: 'boolean', default: false },
  postgres: { type: 'boolean', default: false },
  growth: { type: 'boolean', default: false },
  only: { type: 'string' },
  rounds: { type: 'string' },
  json: { type: 'string' },
  dir: { type: 'string' },
  keep: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false }
}

/** The command line asks for what is not there. */
export class UsageError extends Error {}

/**
 * Reads the command line. `rows` are all there are; `ids` are those to run, in their order: a row that needs a flag runs with it, or where it
 * is named. @throws UsageError naming what is wrong.
 */
export function optionsOf(args, rows) {
  const values = valuesOf(args)
  const known = rows.map(({ id }) => id)
  const asked = values.only?.split(',').filter(id => id !== '')
  const unknown = asked?.filter(id => !known.includes(id)) ?? []
  if (unknown.length > 0) throw new UsageError(`no such row: ${unknown.join(', ')}; there are ${known.join(', ')}`)
  const chosen = rows.filter(({ id, needs }) => asked?.includes(id) ?? (needs === undefined || values[needs]))
  return { ...values, ids: chosen.map(({ id }) => id), scale: scaleOf(values) }
}

function valuesOf(args) {
  try {
    return parseArgs({ args, options: SPECIFICATION }).values
  } catch (error) {
    throw new UsageError(error.message)
  }
}

function scaleOf({ quick, million, rounds }) {
  const scale = quick ? QUICK : FULL
  const grown = million
    ? {
        sweepEntries: [100_000, 1_000_000],
        growthEntries: [10_000, 100_000, 1_000_000],
        growthLengths: [...FULL.growthLengths, 1024 * MIB]
      }
    : {}
  if (rounds === undefined) return { ...scale, ...grown }
  const wanted = Number(rounds)
  if (!Number.isSafeInteger(wanted) || wanted < 1) throw new UsageError('--rounds takes a whole number from 1')
  return { ...scale, ...grown, rounds: wanted, streamRounds: wanted, openRounds: wanted }
}

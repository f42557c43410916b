/** What the specs of the explorer share: which configurations run, how a finding is shown, the figures at the end. */
import { afterAll, expect, it } from 'vitest'
import { surround } from '../src/ambient.js'
import type { Bug } from '../src/bug.js'
import type { Configuration } from '../src/configuration.js'
import type { Listed } from '../src/configurations/index.js'
import { Run } from '../src/run.js'
import { type Found, search } from '../src/search.js'
import { choicesOf, replay } from '../src/story.js'

/** `ALKBLOBS_SCHEDULE=<id>`: walks that one schedule and prints its story; no search is made then. */
const wanted = process.env.ALKBLOBS_SCHEDULE
export const isReplaying = wanted !== undefined
export const isLong = process.env.ALKBLOBS_LONG === '1'

/** Bounds what hangs; a search on a busy machine takes many times what it takes on an idle one. */
export const SEARCH_TIMEOUT_MS = isLong ? 3_600_000 : 120_000

/** Most schedules of a long configuration, about a minute on an idle core; `ALKBLOBS_SCHEDULES=<n>` walks further. */
const LONG_SCHEDULES_MAX = Number(process.env.ALKBLOBS_SCHEDULES ?? 60_000)

/** Prints the story of the wanted schedule, if it is one of this configuration, and says whether it is. */
export async function replayWanted(configuration: Configuration, bug?: Bug): Promise<boolean> {
  if (wanted === undefined || choicesOf(wanted).name !== configuration.name) return false
  const restore = surround()
  const { story } = await Run.prepare(configuration, bug)
    .then(prepared => replay(prepared, configuration, wanted, bug))
    .finally(restore)
  process.stdout.write(`${story}\n`)
  return true
}

/** One test for each configuration: its search finds nothing, and ends. The figures are printed at the end. */
export function searchAll(configurations: readonly Listed[]): void {
  const figures: Found[] = []
  for (const configuration of configurations) {
    if (configuration.isLong && !isLong && !isReplaying) continue
    it(`${configuration.name}: every schedule keeps every promise`, { timeout: SEARCH_TIMEOUT_MS }, async context => {
      if (isReplaying) {
        if (!(await replayWanted(configuration))) context.skip()
        return
      }
      const found = await search(configuration, configuration.isLong ? { schedulesMax: LONG_SCHEDULES_MAX } : {})
      figures.push(found)
      expect(found.failure?.story ?? '').toBe('')
      // Of the long ones some have more schedules than anybody waits for; the table says how far they were walked.
      if (!configuration.isLong) expect(found.isComplete).toBe(true)
    })
  }
  afterAll(() => {
    if (!isReplaying) process.stdout.write(`${tableOf(figures)}\n`)
  })
}

function tableOf(figures: readonly Found[]): string {
  const sum = (of: (found: Found) => number) => figures.reduce((total, found) => total + of(found), 0)
  const rows = figures.map(({ states, schedules, depth, seconds, configuration, isComplete }) =>
    rowOf(states, schedules, depth, seconds, `${configuration}${isComplete ? '' : ' (not to its end)'}`)
  )
  const complete = figures.filter(({ isComplete }) => isComplete).length
  const total = rowOf(
    sum(({ states }) => states),
    sum(({ schedules }) => schedules),
    Math.max(0, ...figures.map(({ depth }) => depth)),
    sum(({ seconds }) => seconds),
    `${complete} of ${figures.length} configurations to their end`
  )
  return ['  states schedules depth  seconds  configuration', ...rows, total].join('\n')
}

function rowOf(states: number, schedules: number, depth: number, seconds: number, name: string): string {
  const counts = [`${states}`.padStart(8), `${schedules}`.padStart(10), `${depth}`.padStart(6)].join('')
  return `${counts}${seconds.toFixed(2).padStart(9)}  ${name}`
}

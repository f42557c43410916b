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

/** One test for each configuration: its search ends, and finds nothing. The figures are printed at the end. */
export function searchAll(configurations: readonly Listed[]): void {
  const figures: Found[] = []
  for (const configuration of configurations) {
    if (configuration.isLong && !isLong && !isReplaying) continue
    it(`${configuration.name}: every schedule keeps every promise`, { timeout: SEARCH_TIMEOUT_MS }, async context => {
      if (isReplaying) {
        if (!(await replayWanted(configuration))) context.skip()
        return
      }
      const found = await search(configuration)
      expect(found.failure?.story ?? '').toBe('')
      expect(found.isComplete).toBe(true)
      figures.push(found)
    })
  }
  afterAll(() => {
    if (!isReplaying) process.stdout.write(`${tableOf(figures)}\n`)
  })
}

function tableOf(figures: readonly Found[]): string {
  const sum = (of: (found: Found) => number) => figures.reduce((total, found) => total + of(found), 0)
  const rows = figures.map(({ states, schedules, depth, seconds, configuration }) =>
    rowOf(states, schedules, depth, seconds, configuration)
  )
  const total = rowOf(
    sum(({ states }) => states),
    sum(({ schedules }) => schedules),
    Math.max(0, ...figures.map(({ depth }) => depth)),
    sum(({ seconds }) => seconds),
    `${figures.length} configurations, each to its end`
  )
  return ['  states schedules depth  seconds  configuration', ...rows, total].join('\n')
}

function rowOf(states: number, schedules: number, depth: number, seconds: number, name: string): string {
  const counts = [`${states}`.padStart(8), `${schedules}`.padStart(10), `${depth}`.padStart(6)].join('')
  return `${counts}${seconds.toFixed(2).padStart(9)}  ${name}`
}

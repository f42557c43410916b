/** Random schedules of three instances with up to four operations each: where a search has no end. */
import { describe, expect, it } from 'vitest'
import { randomConfiguration, sample } from '../src/random.js'
import { choicesOf } from '../src/story.js'
import { isLong, isReplaying, replayWanted, SEARCH_TIMEOUT_MS } from './searching.js'

const CONFIGURATIONS = isLong ? 2_000 : 60
const SCHEDULES = isLong ? 50 : 12

describe('random schedules', () => {
  const seed = Number(process.env.ALKBLOBS_SEED ?? Math.floor(Math.random() * 2 ** 31))

  it(`keep every promise (ALKBLOBS_SEED=${seed})`, { timeout: SEARCH_TIMEOUT_MS }, async context => {
    if (isReplaying) {
      const name = choicesOf(process.env.ALKBLOBS_SCHEDULE ?? '').name
      const own = /^random (\d+)$/.exec(name)?.[1]
      if (own === undefined || !(await replayWanted(randomConfiguration(Number(own))))) context.skip()
      return
    }
    const walked = { schedules: 0, steps: 0 }
    for (let n = 0; n < CONFIGURATIONS; n++) {
      const { failure, schedules, steps } = await sample(randomConfiguration(seed + n), seed + n, SCHEDULES)
      expect(failure?.story ?? '').toBe('')
      walked.schedules += schedules
      walked.steps += steps
    }
    process.stdout.write(`${walked.schedules} random schedules, ${walked.steps} steps, from ALKBLOBS_SEED=${seed}\n`)
  })
})

/**
 * The test of the search: each planted bug is found, as the promise it breaks, and its story can be walked again. Without the bug the
 * same configuration finds nothing; that takes longer, and is looked at with ALKBLOBS_LONG=1.
 */
import { describe, expect, it } from 'vitest'
import { surround } from '../src/ambient.js'
import { PLANTED } from '../src/planted/index.js'
import { Run } from '../src/run.js'
import { search } from '../src/search.js'
import { replay } from '../src/story.js'
import { isLong, isReplaying, replayWanted, SEARCH_TIMEOUT_MS } from './searching.js'

describe('planted bugs', () => {
  for (const { bug, configuration } of PLANTED) {
    it(`${bug.name}: found`, { timeout: SEARCH_TIMEOUT_MS }, async context => {
      if (isReplaying) {
        if (!(await replayWanted(configuration, bug))) context.skip()
        return
      }
      const { failure, schedules, seconds } = await search(configuration, { bug })
      expect(failure?.violations[0]).toMatch(/^(S1|S3|G[1-7]): /)
      process.stdout.write(
        `found in ${schedules} schedules, ${seconds.toFixed(2)} s: ${bug.name}\n      ${failure?.violations[0]}\n`
      )

      const restore = surround()
      const again = await replay(await Run.prepare(configuration, bug), configuration, failure?.id ?? '', bug).finally(
        restore
      )
      expect(again.violations).toEqual(failure?.violations)
      expect(again.story).toContain(failure?.violations[0])

      if (!isLong) return
      const clean = await search(configuration)
      expect(clean.failure?.story ?? '').toBe('')
      expect(clean.isComplete).toBe(true)
    })
  }
})

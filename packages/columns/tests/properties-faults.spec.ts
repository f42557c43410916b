/** The test of the model: an engine that is wrong in one way is found by random steps, within seconds. */
import { lacking } from '@alkblobs/conformance'
import { faults, type PlantedFault, planted } from '@alkblobs/conformance/broken'
import { runModel } from '@alkblobs/conformance/model'
import { describe, expect, test } from 'vitest'
import { embeddedColumns, memoryFolder } from '../src/index.js'
import { modelFaults } from './model-faults.js'

/**
 * Shown only by what no step of the model does, and caught by their rows: calls beside each other, gets asked for together, puts in a
 * transaction of the application.
 */
const UNSEEN = ['publishes too early', 'remembers what it read', 'publishes beside']

/** The same runs each time: what they find does not depend on luck, and not on how fast this machine is. */
const SEED = 1
/** Faults that take that seed more than a few seconds. */
const SEEDS: Readonly<Record<string, number>> = { 'forgets to cancel': 3, 'unclamped range': 7 }

const FIND_LIMIT_MS = 60_000

const found = [...faults.filter(({ name }) => !UNSEEN.includes(name)), ...modelFaults]

describe('the model finds an engine that', () => {
  for (const fault of found) {
    test(
      `${fault.name}`,
      async () => {
        const made = embeddedColumns.map(make => make({ below: memoryFolder() }))
        const factory = made.find(candidate => lacking(candidate, fault.needs).length === 0)
        expect(factory, 'a column in which the fault shows').toBeDefined()
        if (factory === undefined) return
        const wrong = planted(factory, fault as PlantedFault)
        const options = { seed: SEEDS[fault.name] ?? SEED, timeLimitMs: FIND_LIMIT_MS, shrinkLimitMs: 0 }
        await expect(runModel(wrong, options)).rejects.toThrow(
          /Property failed[\s\S]*seed: [\s\S]*content 0: \d+ bytes/
        )
      },
      FIND_LIMIT_MS + 10_000
    )
  }

  test('is wrong only where its fault says so: none is left out for a name that is none', () => {
    const names = faults.map(({ name }) => name)
    expect(UNSEEN.filter(name => !names.includes(name))).toEqual([])
  })
})

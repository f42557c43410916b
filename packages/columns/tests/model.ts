/** How the store model is run over a column: within a time, and telling how much it has tried. */
import { type ModelOptions, type ModelRuns, runModel } from '@alkblobs/conformance/model'
import { expect, test } from 'vitest'
import type { ColumnFactory } from '../src/index.js'

const isLong = process.env.ALKBLOBS_LONG === '1'

/** The long form takes this many times as long. */
const LONG_FACTOR = 20

/** What a run leaves room for beside the time limit: the last run to its end, and the shortening of a failure. */
const MARGIN_MS = 40_000

function tell({ name }: ColumnFactory, { runs, steps, byKind, seed, isInterrupted }: ModelRuns): void {
  const kinds = [...byKind].map(([kind, count]) => `${kind} ${count}`).sort()
  const end = isInterrupted ? 'until the time was over' : 'to the end'
  process.stdout.write(`${name}: ${runs} runs ${end}, ${steps} steps, seed ${seed} (${kinds.join(', ')})\n`)
}

/** Declares the test of one column; it takes `timeLimitMs`, and at least one run. */
export function testModel(factory: ColumnFactory, timeLimitMs: number, options: ModelOptions = {}): void {
  const limitMs = isLong ? timeLimitMs * LONG_FACTOR : timeLimitMs
  test(
    `${factory.name} does what the model does`,
    async () => {
      const done = await runModel(factory, { runs: Number.MAX_SAFE_INTEGER, ...options, timeLimitMs: limitMs })
      tell(factory, done)
      expect(done.runs).toBeGreaterThan(0)
    },
    limitMs + MARGIN_MS
  )
}

/** A folder of bodies against plain data, step by random step; and folders that hold what we did not write. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBodiesModel } from '@alkblobs/conformance/model'
import type { BodyStore } from '@alkblobs/core/engine'
import { expect, test } from 'vitest'
import { local } from '../src/index.js'
import { context } from './support.js'

/** In memory where there is such a folder: what is tried is the store, not the disk. */
const below = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

async function open() {
  const folder = mkdtempSync(join(below, 'alkblobs-local-'))
  const engine = await local({ root: join(folder, 'large') }).open(context)
  return {
    bodies: engine.bodies as BodyStore,
    async close() {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

test('the body store does what the model does', async () => {
  const done = await runBodiesModel(open, { timeLimitMs: 4_000 })
  process.stdout.write(`bodies of local: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
  expect(done.runs).toBeGreaterThan(0)
}, 60_000)

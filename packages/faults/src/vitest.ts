/**
 * Binds the ledger to vitest: importing this file makes every test fail that forgets an armed fault, and writes the records of the
 * test file when it is over. Where they go and which run they belong to is told by `ALKBLOBS_FAULTS_FOLDER` and `ALKBLOBS_FAULTS_RUN`.
 */
import { basename, dirname } from 'node:path'
import { afterAll, afterEach, expect } from 'vitest'
import { ledger } from './ledger.js'

afterEach(() => ledger.assertFinished())

afterAll(() => {
  const { testPath = 'unknown' } = expect.getState()
  const folder = process.env.ALKBLOBS_FAULTS_FOLDER ?? 'test-results/faults'
  const run = process.env.ALKBLOBS_FAULTS_RUN ?? 'by-hand'
  const packageName = basename(dirname(testPath.slice(0, Math.max(testPath.lastIndexOf('/tests/') + 6, 0))))
  ledger.write({ folder, run, source: `${packageName}.${basename(testPath, '.spec.ts')}` })
})

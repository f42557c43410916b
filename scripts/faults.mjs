// The part `faults` of `npm test`: the tests that make things fail, and the gate over what they have recorded. What needs a server that this
// machine cannot have is named by the gate, and fails it with ALKBLOBS_REQUIRE=faults.
import { randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import { inRoot } from './workspace.mjs'

const built = (name, file) => import(pathToFileURL(inRoot('packages', name, 'dist', file)).href)
const isRequired = () => (process.env.ALKBLOBS_REQUIRE ?? '').split(',').includes('faults')

/** Runs the part by the function that runs one part of every package's tests, says by `fail` what is wrong, and answers the counts, the gate as one check among them. */
export async function faults(vitest, fail) {
  const { beginRun, judgeRun, linesOf } = await built('faults', 'gate.js')
  const { holdForRun, noServer } = await built('testkit', 'index.js')
  const folder = inRoot('test-results', 'faults')
  const run = randomUUID()
  Object.assign(process.env, { ALKBLOBS_FAULTS_FOLDER: folder, ALKBLOBS_FAULTS_RUN: run })
  beginRun(folder, run)
  const server = await holdForRun().catch(error => ({ failed: error.message }))
  if (server.failed !== undefined) {
    return { passed: 0, failed: fail(`faults: ${server.failed}`), skipped: 0 }
  }
  try {
    process.stdout.write(`${server.line}\n`)
    const sum = await vitest('faults')
    const reason = isRequired() ? undefined : noServer()
    const judgement = judgeRun(folder, reason === undefined ? {} : { noServer: reason })
    process.stdout.write(`${linesOf(judgement, reason).join('\n')}\n`)
    if (judgement.failures.length === 0) return { ...sum, passed: sum.passed + 1 }
    return { ...sum, failed: sum.failed + fail(`faults: ${judgement.failures.join('; ')}`) }
  } finally {
    await server.release()
  }
}

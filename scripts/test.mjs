// `npm test`: sets the clone up and runs every part, each with a written time budget on two cores.
//   --only <part,…>   these parts alone         --with <part,…>   further parts: `pack`, `postgres`
//   --only conformance  checks and prints the report of the last run of the columns
//   --long            long forms of the tests (ALKBLOBS_LONG=1); budgets do not apply
// What needs PostgreSQL (in the making, so on request) finds a server or starts one; where none can be had it is skipped with the reason, and fails with
// ALKBLOBS_REQUIRE=postgres, the gate of `faults` with ALKBLOBS_REQUIRE=postgres,faults. The last line counts every test of every vitest run, and each check as one. A budget informs; it fails nothing.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { faults } from './faults.mjs'
import { lint } from './lint.mjs'
import { packCheck } from './pack-check.mjs'
import { setup } from './setup.mjs'
import { snippets } from './snippets.mjs'
import { tidy } from './tidy.mjs'
import { inRoot, packages, readJson, run, turbo } from './workspace.mjs'

const checks = async () => countChecks([...(await lint()), ...(await tidy()), ...(await snippets())])

const parts = [
  { name: 'checks', budgetMinutes: 2, run: checks },
  { name: 'embedded', budgetMinutes: 4, run: () => embedded() },
  { name: 'postgres', budgetMinutes: 4, run: () => postgres(), onRequest: true },
  { name: 'faults', budgetMinutes: 4, run: () => faults(vitest) },
  { name: 'conformance', budgetMinutes: 0.2, run: () => conformance() },
  { name: 'properties', budgetMinutes: 2, run: () => vitest('properties') },
  { name: 'pack', budgetMinutes: 3, run: async () => countChecks(await packCheck()), onRequest: true }
]

const partNamed = wanted => parts.find(({ name }) => name === wanted)
const testkit = '@alkblobs/testkit'
const conformanceReport = inRoot('test-results', 'conformance.json')

const countChecks = outcomes => ({
  passed: outcomes.filter(({ passed }) => passed).length,
  failed: outcomes.filter(({ passed }) => !passed).length,
  skipped: 0
})

/** The packages that have specs of a part. What needs the server lies in `tests/postgres`, or is all of a package that uses the kit. */
function testedIn(part) {
  const partOf = ({ folder, json }) => {
    const usesKit = json.name === testkit || [json.dependencies, json.devDependencies].some(each => each?.[testkit])
    const isWhole = usesKit && !existsSync(inRoot(folder, 'tests', 'postgres'))
    return file => {
      if (/(^|\/)properties[^/]*\.spec\.ts$/.test(file)) return 'properties'
      if (file.startsWith('faults/')) return 'faults'
      return isWhole || file.startsWith('postgres/') ? 'postgres' : 'embedded'
    }
  }
  const hasSpecs = each =>
    existsSync(inRoot(each.folder, 'tests')) &&
    readdirSync(inRoot(each.folder, 'tests'), { recursive: true })
      .map(file => file.replaceAll('\\', '/'))
      .some(file => file.endsWith('.spec.ts') && partOf(each)(file) === part)
  return packages().filter(each => each.json.scripts?.test !== undefined && hasSpecs(each))
}

/** Runs one part of every package's tests and adds up what vitest's own reports say. */
async function vitest(part, { mayBeSkipped = false } = {}) {
  const tested = testedIn(part)
  const reportOf = ({ folder }) => inRoot(folder, 'test-results', `${part}.json`)
  for (const each of tested) rmSync(reportOf(each), { force: true })
  const filters = tested.map(({ json }) => `--filter=${json.name}`)
  const flags = ['--continue', '--concurrency=2', '--log-order=grouped', '--output-logs=new-only']
  const args = ['run', 'test', ...flags, ...filters]
  const { code } = await turbo(args, { env: { ALKBLOBS_TEST_PART: part, ...(isLong ? { ALKBLOBS_LONG: '1' } : {}) } })

  const sum = { passed: 0, failed: 0, skipped: 0 }
  for (const each of tested) add(sum, countReport(each, reportOf(each)))
  if (sum.passed + sum.failed === 0 && !mayBeSkipped) sum.failed = fail(`${part}: not one test ran`)
  if (code !== 0 && sum.failed === 0) sum.failed = fail(`${part}: a test run ended with exit code ${code}`)
  return sum
}

/** Among these are the columns; a report of an earlier run must not stand in for one that they did not leave. */
async function embedded() {
  rmSync(conformanceReport, { force: true })
  return await vitest('embedded')
}

/** One server for the whole part, and a count of what the tests have left on it. */
async function postgres() {
  rmSync(conformanceReport, { force: true })
  const { holdForRun, noServer, residue } = await import(
    pathToFileURL(inRoot('packages', 'testkit', 'dist', 'index.js')).href
  )
  let server
  try {
    server = await holdForRun()
  } catch (error) {
    return { passed: 0, failed: fail(`postgres: ${error.message}`), skipped: 0 }
  }
  process.stdout.write(`${server.line}\n`)
  try {
    if (noServer() !== undefined) return await vitest('postgres', { mayBeSkipped: true })
    const before = await residue()
    const sum = await vitest('postgres')
    add(sum, await nothingLeft(before, residue))
    return sum
  } finally {
    await server.release()
  }
}

/** A session takes a moment to end on the server; everything else is there or not. */
async function nothingLeft(before, residue) {
  let left
  for (const until = performance.now() + 3_000; left === undefined || performance.now() < until; await sleep(100)) {
    const after = await residue()
    left = Object.keys(after).filter(what => after[what] > before[what])
    if (left.length === 0) return { passed: 1, failed: 0, skipped: 0 }
  }
  return { passed: 0, failed: fail(`postgres: the tests left ${left.join(', ')} on the server`), skipped: 0 }
}

/** The gate over the report that the columns have left, printed as a matrix. Nothing is run a second time. */
async function conformance() {
  const columns = isChosen(partNamed('postgres')) ? [] : ['--embedded']
  const report = inRoot('packages', 'columns', 'dist', 'report.js')
  const { code } = await run(process.execPath, [report, '--check', ...columns])
  return code === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 }
}

function countReport({ folder }, file) {
  if (!existsSync(file)) return { passed: 0, failed: fail(`${folder}: the test run left no report`), skipped: 0 }
  const report = readJson(file)
  // A file that throws while it loads has no tests to fail; it is counted as one.
  const broken = report.testResults.filter(
    each => each.status === 'failed' && each.assertionResults.length === 0
  ).length
  const skipped = report.numPendingTests + report.numTodoTests
  return { passed: report.numPassedTests, failed: report.numFailedTests + broken, skipped }
}

function fail(line) {
  process.stdout.write(`FAIL ${line}\n`)
  return 1
}

function add(sum, { passed, failed, skipped }) {
  sum.passed += passed
  sum.failed += failed
  sum.skipped += skipped
}

function listAfter(flag) {
  const index = process.argv.indexOf(flag)
  const list = index < 0 ? [] : (process.argv[index + 1] ?? '').split(',')
  const unknown = list.filter(name => !parts.some(part => part.name === name))
  if (unknown.length > 0) {
    process.stderr.write(`no such part: ${unknown.join(', ')}; there are ${parts.map(({ name }) => name).join(', ')}\n`)
    process.exit(2)
  }
  return list
}

/** One line a part: what it counted, how long it took, what it may take. */
function report(rows) {
  process.stdout.write('\npart         passed  failed  skipped     time   budget\n')
  for (const { name, passed, failed, skipped, seconds, budgetMinutes } of rows) {
    const counts = [`${passed}`.padStart(8), `${failed}`.padStart(8), `${skipped}`.padStart(9)].join('')
    const over = !isLong && seconds > budgetMinutes * 60 ? '  over' : ''
    const budget = isLong ? '     none' : `${budgetMinutes * 60} s`.padStart(9)
    process.stdout.write(`${name.padEnd(11)}${counts}${`${seconds.toFixed(1)} s`.padStart(9)}${budget}${over}\n`)
  }
}

const isLong = process.argv.includes('--long')
const only = listAfter('--only')
const extra = listAfter('--with')
const isChosen = ({ name, onRequest }) =>
  only.length > 0 ? only.includes(name) : onRequest !== true || extra.includes(name)

await setup()
const rows = []
for (const part of parts.filter(isChosen)) {
  process.stdout.write(`\n== ${part.name}\n`)
  const start = performance.now()
  const counts = await part.run()
  rows.push({ ...part, ...counts, seconds: (performance.now() - start) / 1000 })
}

report(rows)
const total = { passed: 0, failed: 0, skipped: 0 }
for (const row of rows) add(total, row)
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed${skipped}\n`)
process.exitCode = total.failed === 0 ? 0 : 1

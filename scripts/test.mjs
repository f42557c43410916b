// `npm test`: sets the clone up and runs every part, each with a written time budget on two cores.
//   --only <part,…>   these parts alone         --with <part,…>   further parts: `pack`, `mutants`, `postgres-14` to `postgres-18`
//   --only conformance  checks and prints the report of the last run of the columns
//   --matrix          the columns on every version of PostgreSQL that there is: `--only` with all of `postgres-…`
//   --whole           on other versions of PostgreSQL everything that needs a server, not the columns alone
//   --long            long forms of the tests (ALKBLOBS_LONG=1); budgets do not apply
// What needs PostgreSQL finds a server or starts one; where none can be had it is skipped with the reason, and fails with
// ALKBLOBS_REQUIRE=postgres, as does the gate of `faults` with ALKBLOBS_REQUIRE=postgres,faults. The last line counts every test of every
// vitest run, and each check as one. A budget informs; it fails nothing.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { faults } from './faults.mjs'
import { lint } from './lint.mjs'
import { mutants, mutantsFit } from './mutants.mjs'
import { packCheck } from './pack-check.mjs'
import { binariesOf, majors } from './postgres-versions.mjs'
import { setup } from './setup.mjs'
import { snippets } from './snippets.mjs'
import { tidy } from './tidy.mjs'
import { inRoot, packages, readJson, run, turbo } from './workspace.mjs'

const isLong = process.argv.includes('--long')
const isWhole = process.argv.includes('--whole')
const isMatrix = process.argv.includes('--matrix')

const checks = async () => countChecks([...(await lint()), ...(await tidy()), ...(await snippets()), ...mutantsFit()])

const parts = [
  { name: 'checks', budgetMinutes: 2, run: checks },
  { name: 'embedded', budgetMinutes: 4, run: () => embedded() },
  { name: 'postgres', budgetMinutes: 8, run: () => postgres() },
  { name: 'faults', budgetMinutes: 4, run: () => faults(vitest, fail) },
  { name: 'conformance', budgetMinutes: 0.2, run: () => conformance(isPartial() ? ['--embedded'] : []) },
  { name: 'properties', budgetMinutes: 2, run: () => vitest('properties') },
  { name: 'pack', budgetMinutes: 3, run: async () => countChecks(await packCheck()), onRequest: true },
  { name: 'mutants', budgetMinutes: 2, run: async () => countChecks(await mutants()), onRequest: true },
  ...majors.map(major => ({
    name: `postgres-${major}`,
    budgetMinutes: isWhole ? 8 : 5,
    run: () => postgresOf(major),
    onRequest: true
  }))
]

const testkit = '@alkblobs/testkit'
const conformanceReport = (name = 'conformance') => inRoot('test-results', `${name}.json`)

const failures = []

const countChecks = outcomes => {
  const failed = outcomes.filter(({ passed }) => !passed)
  for (const { name } of failed) note(name)
  return { passed: outcomes.length - failed.length, failed: failed.length, skipped: 0 }
}

/** The packages that have specs of a part. What needs the server lies in `tests/postgres`, or is all of a package that uses the kit. */
function testedIn(part) {
  const partOf = ({ folder, json }) => {
    const usesKit = json.name === testkit || [json.dependencies, json.devDependencies].some(each => each?.[testkit])
    const isWhole = usesKit && !existsSync(inRoot(folder, 'tests', 'postgres'))
    return file => {
      if (file.startsWith('postgres/')) return 'postgres'
      if (/(^|\/)properties[^/]*\.spec\.ts$/.test(file)) return 'properties'
      if (file.startsWith('faults/')) return 'faults'
      return isWhole ? 'postgres' : 'embedded'
    }
  }
  const hasSpecs = each =>
    existsSync(inRoot(each.folder, 'tests')) &&
    readdirSync(inRoot(each.folder, 'tests'), { recursive: true })
      .map(file => file.replaceAll('\\', '/'))
      .some(file => file.endsWith('.spec.ts') && partOf(each)(file) === part)
  return packages().filter(each => each.json.scripts?.test !== undefined && hasSpecs(each))
}

/**
 * Runs one part of every package's tests and adds up what vitest's own reports say. `name`: what the run is called where that is not the
 * part's own name; `only`: the name of one package and the beginning of the names of its specs.
 */
async function vitest(part, { mayBeSkipped = false, name = part, only: chosen, env = {} } = {}) {
  const tested = testedIn(part).filter(({ json }) => chosen === undefined || json.name === chosen.package)
  const reportOf = ({ folder }) => inRoot(folder, 'test-results', `${name}.json`)
  for (const each of tested) rmSync(reportOf(each), { force: true })
  const filters = tested.map(({ json }) => `--filter=${json.name}`)
  const flags = ['--continue', '--concurrency=2', '--log-order=grouped', '--output-logs=new-only']
  const args = ['run', 'test', ...flags, ...filters, ...(chosen === undefined ? [] : ['--', chosen.specs])]
  const own = { ALKBLOBS_TEST_PART: part, ALKBLOBS_TEST_RUN: name, ...(isLong ? { ALKBLOBS_LONG: '1' } : {}) }
  const { code } = await turbo(args, { env: { ...own, ...env } })

  const sum = { passed: 0, failed: 0, skipped: 0 }
  for (const each of tested) add(sum, countReport(each, reportOf(each)))
  if (sum.passed + sum.failed === 0 && !mayBeSkipped) sum.failed = fail(`${name}: not one test ran`)
  if (code !== 0 && sum.failed === 0) sum.failed = fail(`${name}: a test run ended with exit code ${code}`)
  return sum
}

/** Among these are the columns; a report of an earlier run must not stand in for one that they did not leave. */
async function embedded() {
  rmSync(conformanceReport(), { force: true })
  return await vitest('embedded')
}

async function postgres() {
  rmSync(conformanceReport(), { force: true })
  return await onServer('postgres', options => vitest('postgres', options))
}

/** The columns on a server of that version, or all that needs a server; the columns' report is held against the gate. */
async function postgresOf(major) {
  const name = `postgres-${major}`
  rmSync(conformanceReport(`conformance-${name}`), { force: true })
  const { bin, refused } = await binariesOf(major)
  if (refused !== undefined) {
    process.stdout.write(`${refused}\n`)
    const isRequired = (process.env.ALKBLOBS_REQUIRE ?? '').split(',').includes('postgres')
    return { passed: 0, failed: isRequired ? fail(`${name}: ${refused}`) : 0, skipped: isRequired ? 0 : 1 }
  }
  const env = { ALKBLOBS_PG: 'embedded', ALKBLOBS_PG_BIN: bin }
  const before = Object.fromEntries(Object.keys(env).map(each => [each, process.env[each]]))
  Object.assign(process.env, env)
  try {
    const columns = isWhole ? {} : { only: { package: '@alkblobs/columns', specs: 'tests/postgres/column-' } }
    const sum = await onServer(name, options => vitest('postgres', { ...options, ...columns, name }))
    add(sum, await conformance(['--postgres', major]))
    return sum
  } finally {
    for (const [each, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[each]
      else process.env[each] = value
    }
  }
}

/** One server for the whole part, and a count of what the tests have left on it. */
async function onServer(name, test) {
  const { holdForRun, noServer, residue } = await import(
    pathToFileURL(inRoot('packages', 'testkit', 'dist', 'index.js')).href
  )
  let server
  try {
    server = await holdForRun()
  } catch (error) {
    return { passed: 0, failed: fail(`${name}: ${error.message}`), skipped: 0 }
  }
  process.stdout.write(`${server.line}\n`)
  try {
    if (noServer() !== undefined) return await test({ mayBeSkipped: true })
    const before = await residue()
    const sum = await test({})
    add(sum, await nothingLeft(name, before, residue))
    return sum
  } finally {
    await server.release()
  }
}

/** A session takes a moment to end on the server; everything else is there or not. */
async function nothingLeft(name, before, residue) {
  let left
  for (const until = performance.now() + 3_000; left === undefined || performance.now() < until; await sleep(100)) {
    const after = await residue()
    left = Object.keys(after).filter(what => after[what] > before[what])
    if (left.length === 0) return { passed: 1, failed: 0, skipped: 0 }
  }
  return { passed: 0, failed: fail(`${name}: the tests left ${left.join(', ')} on the server`), skipped: 0 }
}

/** A run without the server is judged without the columns on it. */
const isPartial = () => only.includes('embedded') && !only.includes('postgres')

/** The gate over the report that the columns have left, printed as a matrix. Nothing is run a second time. */
async function conformance(columns) {
  const report = inRoot('packages', 'columns', 'dist', 'report.js')
  const { code } = await run(process.execPath, [report, '--check', ...columns])
  return code === 0
    ? { passed: 1, failed: 0, skipped: 0 }
    : { passed: 0, failed: fail('conformance: the gate'), skipped: 0 }
}

function countReport({ folder }, file) {
  if (!existsSync(file)) return { passed: 0, failed: fail(`${folder}: the test run left no report`), skipped: 0 }
  const report = readJson(file)
  // A file that throws while it loads has no tests to fail; it is counted as one.
  const broken = report.testResults.filter(
    each => each.status === 'failed' && each.assertionResults.length === 0
  ).length
  for (const { name, assertionResults, message } of report.testResults) {
    const spec = path.relative(inRoot(), name)
    const failed = assertionResults.filter(each => each.status === 'failed')
    for (const each of failed) note(`${spec}: ${each.fullName}`, each.failureMessages[0])
    if (failed.length === 0 && message) note(spec, message)
  }
  const skipped = report.numPendingTests + report.numTodoTests
  return { passed: report.numPassedTests, failed: report.numFailedTests + broken, skipped }
}

function fail(line) {
  process.stdout.write(`FAIL ${line}\n`)
  note(line)
  return 1
}

/** What failed is said once more below the table: the end of a long log is what one has of it, and often all that is kept. */
function note(what, message = '') {
  failures.push([what, ...message.split('\n').slice(0, 12)].join('\n    '))
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

const only = [...listAfter('--only'), ...(isMatrix ? majors.map(major => `postgres-${major}`) : [])]
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
for (const each of failures) process.stdout.write(`\nFAIL ${each}\n`)
const total = { passed: 0, failed: 0, skipped: 0 }
for (const row of rows) add(total, row)
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed${skipped}\n`)
process.exitCode = total.failed === 0 ? 0 : 1

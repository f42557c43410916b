// `npm run mutants`: shows that the tests would notice. Each mutant of the kept list (packages/explorer/mutants) is a small edit
// that breaks one rule of the protocol; it is made in a copy of the sources, and the tests named with it must turn red.
//   --only <text>   the mutants whose name contains it
// Fails if one survives, if its edit no longer fits the sources, or if a named test is red without it.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { MUTANTS } from '../packages/explorer/mutants/index.mjs'
import { setup } from './setup.mjs'
import { workingFiles } from './tidy.mjs'
import { inRoot, isMain, packages, readJson, run } from './workspace.mjs'

/** A mutant may make a promise that never settles; the tests around it end by this. */
const RUN_LIMIT_MS = 180_000

/** The sources and tests, with the installed packages of this tree beside them. */
async function copyOfTree() {
  const copy = mkdtempSync(join(tmpdir(), 'alkblobs-mutants-'))
  for (const file of await workingFiles()) {
    if (!/^(packages|conformance)\/|^[^/]*\.(json|ts)$/.test(file)) continue
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(inRoot(file), join(copy, file))
  }
  for (const folder of ['.', ...packages().map(each => each.folder)]) {
    const modules = inRoot(folder, 'node_modules')
    if (existsSync(modules) && existsSync(join(copy, folder)))
      symlinkSync(modules, join(copy, folder, 'node_modules'), 'dir')
  }
  return copy
}

const literally = text => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Runs those tests of a package, until the first that fails; gives each that ran, by its title, with whether it passed. */
async function runTests(copy, folder, tests) {
  // A part that selects nothing: it only names the report.
  const report = join(copy, folder, 'test-results', 'mutants.json')
  rmSync(report, { force: true })
  const titles = tests.map(({ test }) => test)
  const chosen = titles.includes(undefined) ? [] : ['-t', titles.map(literally).join('|')]
  const args = ['run', ...new Set(tests.map(({ spec }) => spec)), '--bail=1', ...chosen]
  const env = { ALKBLOBS_TEST_PART: 'mutants', ...(tests.some(({ isLong }) => isLong) ? { ALKBLOBS_LONG: '1' } : {}) }
  const { output, timedOut } = await run('vitest', args, {
    cwd: join(copy, folder),
    quiet: true,
    timeLimitMs: RUN_LIMIT_MS,
    env
  })
  if (timedOut) return [{ title: 'a test that does not end', passed: false }]
  if (!existsSync(report)) return [{ title: `vitest itself: ${output.slice(-2000)}`, passed: false }]
  return readJson(report).testResults.flatMap(({ status, message, assertionResults }) => {
    if (status === 'failed' && assertionResults.length === 0) return [{ title: message.split('\n')[0], passed: false }]
    const ran = assertionResults.filter(each => each.status === 'passed' || each.status === 'failed')
    return ran.map(each => ({ title: each.fullName, passed: each.status === 'passed' }))
  })
}

/** Makes the edits, and answers what puts the sources back; `undefined` if one does not fit. */
function mutate(copy, { edits }) {
  const before = new Map()
  for (const { file, from, to } of edits) {
    const path = join(copy, file)
    const text = readFileSync(path, 'utf8')
    if (!before.has(path)) before.set(path, text)
    if (text.split(from).length !== 2) {
      for (const [changed, kept] of before) writeFileSync(changed, kept)
      return undefined
    }
    writeFileSync(
      path,
      text.replace(from, () => to)
    )
  }
  return () => {
    for (const [path, text] of before) writeFileSync(path, text)
  }
}

const line = (outcome, name, detail) => process.stdout.write(`${outcome.padEnd(9)}${name}\n         ${detail}\n`)

async function judge(copy, mutant) {
  const restore = mutate(copy, mutant)
  if (restore === undefined) {
    line('STALE', mutant.name, 'an edit does not fit the sources any more')
    return false
  }
  const ran = await runTests(copy, mutant.killedBy.folder, [mutant.killedBy]).finally(restore)
  const red = ran.find(({ passed }) => !passed)
  line(red ? 'killed' : 'SURVIVED', mutant.name, red?.title ?? `it breaks ${mutant.breaks}, and nothing noticed`)
  return red !== undefined
}

/** Without a mutant every named test must be there and green. */
async function areGreen(copy, chosen) {
  let green = true
  for (const folder of new Set(chosen.map(({ killedBy }) => killedBy.folder))) {
    const tests = chosen.map(({ killedBy }) => killedBy).filter(killedBy => killedBy.folder === folder)
    const ran = await runTests(copy, folder, tests)
    const missing = tests.filter(({ test = '' }) => !ran.some(({ title }) => title.includes(test)))
    const red = ran.filter(({ passed }) => !passed)
    for (const { title } of red) line('RED', folder, `${title}, without any mutant`)
    if (red.length === 0) for (const { test } of missing) line('MISSING', folder, `${test}: no such test`)
    green &&= red.length + missing.length === 0
  }
  return green
}

export async function mutants(only = '') {
  const chosen = MUTANTS.filter(({ name }) => name.includes(only))
  const copy = await copyOfTree()
  try {
    if (!(await areGreen(copy, chosen))) return false
    let killed = 0
    for (const mutant of chosen) if (await judge(copy, mutant)) killed++
    process.stdout.write(`\n${killed} of ${chosen.length} mutants killed\n`)
    return killed === chosen.length && killed > 0
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

if (isMain(import.meta.url)) {
  await setup({ builds: false })
  const at = process.argv.indexOf('--only')
  process.exitCode = (await mutants(at < 0 ? '' : process.argv[at + 1])) ? 0 : 1
}

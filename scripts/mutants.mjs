// `npm run mutants`: shows that the tests would notice. Each mutant of the kept list (packages/explorer/mutants) is a small edit
// that breaks one rule of the protocol; it is made in a copy of the sources, and the tests named with it must turn red.
//   --only <text>   the mutants whose name contains it
// Fails if one survives, if its edit no longer fits the sources, or if a named test is red without it. That every edit fits is a check
// of its own, `npm run check`: it takes no time, and an edit that does not fit breaks nothing any more.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { MUTANTS } from '../packages/explorer/mutants/index.mjs'
import { setup } from './setup.mjs'
import { workingFiles } from './tidy.mjs'
import { inRoot, isMain, packages, readJson, run } from './workspace.mjs'

/** A mutant may make a promise that never settles; the tests around it end by this. */
const RUN_LIMIT_MS = 180_000

/** Mutants judged at once, each in a copy of its own: a run is one process most of the time. */
const LANES = Math.min(4, availableParallelism())

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

/** The files of a mutant under `base`, before and after its edits; `undefined` if one does not fit. */
function edited(base, { edits }) {
  const files = new Map()
  for (const { file, from, to } of edits) {
    const path = join(base, file)
    const before = files.get(path)?.before ?? readFileSync(path, 'utf8')
    const text = files.get(path)?.after ?? before
    if (text.split(from).length !== 2) return undefined
    files.set(path, { before, after: text.replace(from, () => to) })
  }
  return files
}

/** Whether the edits of every mutant fit the sources as they are. */
export function mutantsFit() {
  const stale = MUTANTS.filter(mutant => edited(inRoot(), mutant) === undefined)
  process.stdout.write(`${stale.length === 0 ? 'ok  ' : 'FAIL'} mutants fit the sources\n`)
  for (const { name } of stale) process.stdout.write(`     ${name}: an edit does not fit any more\n`)
  return [{ name: 'mutants fit the sources', passed: stale.length === 0 }]
}

const line = (outcome, name, detail) => process.stdout.write(`${outcome.padEnd(9)}${name}\n         ${detail}\n`)

async function judge(copy, mutant) {
  const files = edited(copy, mutant)
  if (files === undefined) {
    line('STALE', mutant.name, 'an edit does not fit the sources any more')
    return false
  }
  for (const [path, { after }] of files) writeFileSync(path, after)
  const ran = await runTests(copy, mutant.killedBy.folder, [mutant.killedBy]).finally(() => {
    for (const [path, { before }] of files) writeFileSync(path, before)
  })
  const red = ran.find(({ passed }) => !passed)
  line(red ? 'killed' : 'SURVIVED', mutant.name, red?.title ?? `it breaks ${mutant.breaks}, and nothing noticed`)
  return red !== undefined
}

/** Without a mutant every named test of a package must be there and green. */
async function isGreen(copy, folder, tests) {
  const ran = await runTests(copy, folder, tests)
  const missing = tests.filter(({ test = '' }) => !ran.some(({ title }) => title.includes(test)))
  const red = ran.filter(({ passed }) => !passed)
  for (const { title } of red) line('RED', folder, `${title}, without any mutant`)
  if (red.length === 0) for (const { test } of missing) line('MISSING', folder, `${test}: no such test`)
  return red.length + missing.length === 0
}

/** Does each item in the first copy that is free; gives the answers in their order. */
async function inLanes(copies, items, act) {
  const rest = [...items.entries()]
  const answers = []
  const lane = async copy => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) answers[next[0]] = await act(copy, next[1])
  }
  await Promise.all(copies.map(lane))
  return answers
}

/** Judges the mutants whose name contains `only`; gives each with its outcome, and nothing where a test is red without them. */
export async function mutants(only = '') {
  const chosen = MUTANTS.filter(({ name }) => name.includes(only))
  const copies = []
  try {
    for (let lane = 0; lane < Math.min(LANES, chosen.length); lane++) copies.push(await copyOfTree())
    const killers = chosen.map(({ killedBy }) => killedBy)
    const folders = [...new Set(killers.map(({ folder }) => folder))]
    const greens = await inLanes(copies, folders, (copy, folder) =>
      isGreen(
        copy,
        folder,
        killers.filter(each => each.folder === folder)
      )
    )
    if (greens.includes(false)) return [{ name: 'mutants: the tests without any', passed: false }]
    const killed = await inLanes(copies, chosen, judge)
    process.stdout.write(`\n${killed.filter(Boolean).length} of ${chosen.length} mutants killed\n`)
    return chosen.map(({ name }, i) => ({ name: `mutant: ${name}`, passed: killed[i] }))
  } finally {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true })
  }
}

if (isMain(import.meta.url)) {
  await setup({ builds: false })
  const at = process.argv.indexOf('--only')
  const outcomes = await mutants(at < 0 ? '' : process.argv[at + 1])
  process.exitCode = outcomes.length > 0 && outcomes.every(({ passed }) => passed) ? 0 : 1
}

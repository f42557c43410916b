// `npm run mutation`: Stryker makes every small edit it knows to the sweep and to the put path of core (stryker.config.mjs), and the tests of
// core must notice each. Prints the score of either and what survived; what survives is explained in docs/spec/mutation.md.
//   --fresh   judges every mutant anew; else those whose code and tests are as they were keep their verdict
//   --report  judges nothing, and holds the last report against the page
// Fails if a score is below the least, if a survivor is not explained, or if the page explains one that is none.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import config, { SCOPES } from '../stryker.config.mjs'
import { setup } from './setup.mjs'
import { inRoot, isMain, readJson, run } from './workspace.mjs'

/** In percent, of each scope by itself. */
const SCORE_MIN = 90

const PAGE = 'docs/spec/mutation.md'
const SOURCES = 'packages/core/src/'

/** Code in one line, as the page has it. */
const shown = text => text.replace(/\s+/g, ' ').replaceAll('`', "'").trim()

/** The text between two places of a source; lines and columns begin at 1. */
function textAt(source, { start, end }) {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  const last = lines.length - 1
  lines[last] = lines[last].slice(0, end.column - 1)
  lines[0] = lines[0].slice(start.column - 1)
  return lines.join('\n')
}

/** One line of the page for one mutant: the same for two that read the same. */
function lineOf(name, source, { location, replacement }) {
  return `- \`${name}\`: \`${shown(textAt(source, location))}\` → \`${shown(replacement)}\``
}

/** Every mutant of the report that counts, with its scope and whether it was noticed. */
function judged(report) {
  return Object.entries(report.files).flatMap(([file, { mutants, source }]) => {
    const name = file.slice(SOURCES.length)
    const scope = Object.keys(SCOPES).find(each => SCOPES[each].some(pattern => matches(pattern, name)))
    return mutants
      .filter(({ status }) => ['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status))
      .map(mutant => ({
        scope,
        isNoticed: mutant.status === 'Killed' || mutant.status === 'Timeout',
        line: lineOf(name, source, mutant),
        at: `${file}:${mutant.location.start.line}`
      }))
  })
}

const matches = (pattern, name) =>
  pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : name === `${pattern}.ts`

/** The lines of the page that name a mutant; what follows the second code is the reason. */
function explained() {
  const page = existsSync(inRoot(PAGE)) ? readFileSync(inRoot(PAGE), 'utf8') : ''
  return new Set([...page.matchAll(/^- `[^`]+`: `[^`]*` → `[^`]*`/gm)].map(([line]) => line))
}

function hold(report) {
  const all = judged(report)
  const lines = explained()
  let isRight = true
  for (const scope of Object.keys(SCOPES)) {
    const mutants = all.filter(each => each.scope === scope)
    const noticed = mutants.filter(({ isNoticed }) => isNoticed).length
    const score = (100 * noticed) / mutants.length
    isRight &&= score >= SCORE_MIN
    process.stdout.write(`${scope.padEnd(6)} ${score.toFixed(1)} percent: ${noticed} of ${mutants.length} noticed\n`)
  }
  const survivors = all.filter(({ isNoticed }) => !isNoticed)
  for (const { line, at } of survivors.filter(({ line }) => !lines.has(line))) {
    process.stdout.write(`not explained, at ${at}\n${line}\n`)
    isRight = false
  }
  for (const line of lines) {
    if (survivors.some(each => each.line === line)) continue
    process.stdout.write(`explained, and no survivor\n${line}\n`)
    isRight = false
  }
  return isRight
}

async function mutation(flags) {
  const report = inRoot(config.jsonReporter.fileName)
  if (!flags.includes('--report')) {
    rmSync(report, { force: true })
    if (flags.includes('--fresh')) rmSync(inRoot(config.incrementalFile), { force: true })
    // The property suites find other things each time: a verdict must not depend on what they have found.
    const { code } = await run('stryker', ['run'], { env: { ALKBLOBS_TEST_PART: 'embedded' } })
    if (code !== 0) return false
  }
  return hold(readJson(report))
}

if (isMain(import.meta.url)) {
  await setup({ builds: false })
  process.exitCode = (await mutation(process.argv.slice(2))) ? 0 : 1
}

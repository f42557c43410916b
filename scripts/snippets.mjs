// Compiles and runs the snippets of the pages, as a reader would: against the built packages, each in an empty folder.
//
//   ```ts              a program: compiled, then run       ```js              a program: run as it stands
//   ```ts no-run       compiled only                       ```js no-run       parsed only
//   ```ts continues    goes on where the page's previous program stopped; both are one program
//   ```ts fragment     a signature or a shape, no program: left alone
//
// A program keeps the line numbers of its page, so an error names the line to mend.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setup } from './setup.mjs'
import { workingFiles } from './tidy.mjs'
import { inRoot, isMain, run } from './workspace.mjs'

// The columns depend on every package, so a program beside them can import what a reader would have installed.
const workshop = inRoot('packages', 'columns', '.cache', 'snippets')
const timeLimitMs = 60_000

const isPage = file => /(^|\/)README\.md$/.test(file) || /^docs\/guides\/.+\.md$/.test(file)

/** The programs of one page: `{ page, line, language, run, text }`, the text padded to the page's own line numbers. */
export function programs(page, markdown) {
  const found = []
  let fence
  for (const [index, line] of markdown.split('\n').entries()) {
    const opening = /^```(\S+)?(.*)$/.exec(line)
    if (fence === undefined && opening !== null) {
      const [, language = '', words = ''] = opening
      fence = { language, words: words.trim().split(/\s+/), start: index + 1, lines: [] }
    } else if (fence !== undefined && line === '```') {
      addProgram(found, page, fence)
      fence = undefined
    } else {
      fence?.lines.push(line)
    }
  }
  return found
}

function addProgram(found, page, { language, words, start, lines }) {
  const known = { ts: 'ts', typescript: 'ts', js: 'js', javascript: 'js' }[language]
  if (known === undefined || words.includes('fragment')) return
  const previous = found.at(-1)
  if (words.includes('continues')) {
    if (previous === undefined) throw new Error(`${page}:${start}: continues, but nothing comes before it`)
    const gap = start - previous.text.split('\n').length + 1
    previous.text += `${'\n'.repeat(gap)}${lines.join('\n')}`
    return
  }
  const text = `${'\n'.repeat(start)}${lines.join('\n')}`
  found.push({ page, line: start + 1, language: known, run: !words.includes('no-run'), text })
}

/** The file of a program carries the page's name, so that messages of the compiler read well. */
const fileOf = ({ page, line, language }) =>
  `${page.replaceAll('/', '-').replace(/\.md$/, '')}-${line}.${language === 'ts' ? 'mts' : 'mjs'}`

function layOut(all) {
  rmSync(workshop, { recursive: true, force: true })
  mkdirSync(workshop, { recursive: true })
  for (const program of all) writeFileSync(join(workshop, fileOf(program)), `${program.text}\n`)
  const options = { noEmit: false, declaration: false, sourceMap: false, outDir: 'built', rootDir: '.' }
  const config = { extends: '../../../../tsconfig.base.json', compilerOptions: options, include: ['*.mts'] }
  writeFileSync(join(workshop, 'tsconfig.json'), JSON.stringify(config))
}

async function compile(all) {
  if (!all.some(({ language }) => language === 'ts')) return { code: 0, output: '' }
  return run('tsc', ['-p', join(workshop, 'tsconfig.json'), '--pretty', 'false'], { quiet: true })
}

/** Runs one program in an empty folder, or only parses it, and gives what it printed if it failed. */
async function execute(program) {
  const name = fileOf(program)
  const file = program.language === 'ts' ? join(workshop, 'built', name.replace('.mts', '.mjs')) : join(workshop, name)
  if (!existsSync(file)) return 'did not compile'
  const folder = mkdtempSync(join(tmpdir(), 'alkblobs-snippet-'))
  try {
    const args = program.run ? [file] : ['--check', file]
    const { code, output, timedOut } = await run(process.execPath, args, { cwd: folder, quiet: true, timeLimitMs })
    if (timedOut) return `did not end within ${timeLimitMs / 1000} s`
    return code === 0 ? undefined : output
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Checks every page and gives one outcome for the compilation and one for each program. */
export async function snippets() {
  const pages = (await workingFiles()).filter(isPage)
  const all = pages.flatMap(page => programs(page, readFileSync(inRoot(page), 'utf8')))
  layOut(all)
  const compiled = await compile(all)
  const outcomes = [{ name: 'snippets compile', passed: compiled.code === 0, output: compiled.output }]
  for (const program of all) {
    const output = await execute(program)
    outcomes.push({ name: `snippet ${program.page}:${program.line}`, passed: output === undefined, output })
  }
  for (const { name, passed, output } of outcomes) {
    process.stdout.write(`${passed ? 'ok  ' : 'FAIL'} ${name}\n`)
    if (!passed) process.stdout.write(`${output}\n`)
  }
  return outcomes
}

if (isMain(import.meta.url)) {
  await setup()
  process.exitCode = (await snippets()).every(({ passed }) => passed) ? 0 : 1
}

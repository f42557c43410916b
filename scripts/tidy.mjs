// `npm run tidy`: the habits of the house that a reader notices first, as a test: sizes, names, titles, notes to self, a
// silenced type checker. Sizes and types are read from the syntax tree, not guessed from text.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, extname } from 'node:path'
import { setup } from './setup.mjs'
import { inRoot, isMain, run } from './workspace.mjs'

const fileLines = { aim: 250, limit: 300 }
const functionLines = 60
const bannedNames = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'manager', 'impl', 'data', 'info'])
// Joined here so that this file does not contain the words it looks for.
const notes = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME'].join('|')})\\b`)
const silencers = new RegExp(`@ts-(${['ig' + 'nore', 'no' + 'check'].join('|')})`)

const isSource = file => /\.(ts|mts|cts|mjs|js|cjs)$/.test(file) && !file.endsWith('.d.ts')
const isShipped = file => /(^|\/)src\//.test(file)

/** Findings that need the syntax tree: functions that do not fit a screen, and `any`. */
function treeFindings(ts, file, text) {
  const found = []
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const lineOf = position => tree.getLineAndCharacterOfPosition(position).line + 1
  const visit = node => {
    if (isShipped(file) && ts.isFunctionLike(node) && node.body !== undefined) {
      const length = lineOf(node.end) - lineOf(node.getStart(tree)) + 1
      const at = `${file}:${lineOf(node.getStart(tree))}`
      if (length > functionLines) found.push(`${at}: a function of ${length} lines; the limit is ${functionLines}`)
    }
    if (node.kind === ts.SyntaxKind.AnyKeyword) found.push(`${file}:${lineOf(node.getStart(tree))}: \`any\``)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

function sourceFindings(ts, file, text) {
  const lines = text.split('\n')
  const found = treeFindings(ts, file, text)
  if (isShipped(file) && lines.length - 1 > fileLines.limit) {
    found.push(`${file}: ${lines.length - 1} lines; aim for ${fileLines.aim}, the limit is ${fileLines.limit}`)
  }
  for (const [index, line] of lines.entries()) {
    if (silencers.test(line)) found.push(`${file}:${index + 1}: the type checker is silenced`)
  }
  return found
}

function pageFindings(file, text) {
  // Changesets and the changelogs made from them have the form their tool gives them.
  if (basename(file) === 'CHANGELOG.md' || /^\.changeset\/(?!README)/.test(file)) return []
  const prose = text.replace(/^(```|~~~)[\s\S]*?^\1/gm, '')
  const titles = prose.match(/^# .+/gm)?.length ?? 0
  return titles === 1 ? [] : [`${file}: ${titles} titles (H1); a page has one`]
}

/** Every finding in one file, each as one line. */
function findings(ts, file) {
  const name = (basename(file).split('.')[0] ?? '').toLowerCase()
  const found = bannedNames.has(name) ? [`${file}: a name that says nothing about what is inside`] : []
  const isPage = extname(file) === '.md'
  if (!isSource(file) && !isPage) return found
  const text = readFileSync(inRoot(file), 'utf8')
  for (const [index, line] of text.split('\n').entries()) {
    if (notes.test(line)) found.push(`${file}:${index + 1}: a note to self; do it, or open an issue`)
  }
  return [...found, ...(isPage ? pageFindings(file, text) : sourceFindings(ts, file, text))]
}

/** The files Git knows or would add: what is ignored is nobody's business here. */
export async function workingFiles() {
  const list = async (...args) => {
    const { code, output } = await run('git', ['ls-files', '-z', ...args], { quiet: true })
    if (code !== 0) throw new Error(`git ls-files failed: ${output}`)
    return output.split('\0').filter(file => file !== '')
  }
  const deleted = new Set(await list('--deleted'))
  const files = await list('--cached', '--others', '--exclude-standard', '--deduplicate')
  return files.filter(file => !deleted.has(file))
}

/** Prints the findings and gives the outcome. */
export async function tidy() {
  const ts = createRequire(import.meta.url)('typescript')
  const found = (await workingFiles()).flatMap(file => findings(ts, file))
  process.stdout.write(`${found.length === 0 ? 'ok  ' : 'FAIL'} tidy\n`)
  for (const line of found) process.stdout.write(`     ${line}\n`)
  return [{ name: 'tidy', passed: found.length === 0 }]
}

if (isMain(import.meta.url)) {
  await setup({ builds: false })
  process.exitCode = (await tidy()).every(({ passed }) => passed) ? 0 : 1
}

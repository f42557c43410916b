// `npm run pack:check`: the published packages as their users get them. Packs each, reads the tarballs with publint and
// are-the-types-wrong, installs them with npm into an empty project outside the workspace, and there imports, requires and
// type-checks them. The steps run in order and stop at the first that fails.
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { consumerFiles } from './pack-consumer.mjs'
import { faultKit, faultsIn } from './pack-faults.mjs'
import { setup } from './setup.mjs'
import { cache, inRoot, isMain, packages, pnpm, readJson, run } from './workspace.mjs'

const tarballs = join(cache, 'pack')
const published = () => packages().filter(({ json }) => json.private !== true)
const tarballOf = ({ json }) => join(tarballs, `${json.name.replace('@', '').replace('/', '-')}-${json.version}.tgz`)
const hasTypes = ({ json }) => JSON.stringify(json.exports).includes('"types"')

/** Throws with a command's output unless it ended well. */
async function must(what, promise) {
  const { code, output } = await promise
  if (code !== 0) throw new Error(`${what}\n${output}`)
}

async function pack() {
  rmSync(tarballs, { recursive: true, force: true })
  mkdirSync(tarballs, { recursive: true })
  for (const { folder, json } of published()) {
    const args = ['pack', '--pack-destination', tarballs]
    await must(json.name, pnpm(args, { cwd: inRoot(folder), quiet: true }))
  }
}

async function lintTarballs() {
  for (const each of published()) {
    await must(each.json.name, run('publint', ['run', tarballOf(each), '--strict'], { quiet: true }))
  }
}

// The packages are ESM alone and `require()`d as such (Node >= 20.19), so "resolves to ESM" is what is meant; every other
// finding under Node's and the bundlers' resolution counts.
async function typesOfTarballs() {
  for (const each of published().filter(hasTypes)) {
    const args = [tarballOf(each), '--profile', 'node16', '--ignore-rules', 'cjs-resolves-to-esm', '--no-color']
    await must(each.json.name, run('attw', args, { quiet: true }))
  }
}

/** Nothing that ships leads to the fault kit, by a dependency or by a word. The kit itself may. */
async function noFaultsShipped() {
  for (const each of published().filter(({ json }) => json.name !== faultKit)) {
    const found = await faultsIn(tarballOf(each))
    if (found !== undefined) throw new Error(`${each.json.name} ships ${found}`)
  }
}

/** better-sqlite3 as the workspace compiled it, packed without its install script: nothing is compiled again. */
async function packCompiledSqlite() {
  const from = realpathSync(inRoot('packages', 'engine-sqlite', 'node_modules', 'better-sqlite3'))
  const folder = mkdtempSync(join(tmpdir(), 'alkblobs-sqlite-'))
  try {
    for (const part of ['lib', 'LICENSE', 'build/Release/better_sqlite3.node']) {
      cpSync(join(from, part), join(folder, part), { recursive: true })
    }
    const { name, version, main, license, dependencies } = readJson(join(from, 'package.json'))
    const json = {
      name,
      version,
      main,
      license,
      files: ['lib', 'build'],
      dependencies: { bindings: dependencies.bindings }
    }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(json))
    await must(name, run('npm', ['pack', '--pack-destination', tarballs], { cwd: folder, quiet: true }))
    return join(tarballs, `${name}-${version}.tgz`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function installInto(project) {
  const files = Object.fromEntries(published().map(each => [each.json.name, `file:${tarballOf(each)}`]))
  const dependencies = { ...files, 'better-sqlite3': `file:${await packCompiledSqlite()}` }
  const overrides = Object.fromEntries(Object.keys(dependencies).map(name => [name, `$${name}`]))
  const json = { name: 'consumer', private: true, dependencies, overrides }
  writeFileSync(join(project, 'package.json'), JSON.stringify(json, null, 2))
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1']
  const install = mode => run('npm', ['install', ...flags, mode], { cwd: project, quiet: true })
  // What an earlier run left in npm's cache is enough, and asks nobody; else the registry is asked.
  if ((await install('--offline')).code !== 0) await must('npm install', install('--prefer-offline'))
}

const consumer = name => async project => must(name, run(process.execPath, [name], { cwd: project, quiet: true }))

async function typeCheck(project) {
  const typeRoots = [inRoot('node_modules', '@types')]
  const options = { strict: true, noEmit: true, module: 'NodeNext', target: 'ES2022', skipLibCheck: false, typeRoots }
  const lib = ['ES2023', 'ESNext.Disposable']
  const config = { compilerOptions: { ...options, lib, types: ['node'] }, include: ['*.mts', '*.cts'] }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
  await must('tsc', run('tsc', ['-p', project, '--pretty', 'false'], { quiet: true }))
}

async function runCommand(project) {
  await must(
    'alkblobs --help',
    run(join(project, 'node_modules', '.bin', 'alkblobs'), ['--help'], { cwd: project, quiet: true })
  )
}

const steps = [
  ['pack', pack],
  ['no faults in what ships', noFaultsShipped],
  ['publint', lintTarballs],
  ['are the types wrong', typesOfTarballs],
  ['install in an empty project', installInto],
  ['import', consumer('import.mjs')],
  ['require', consumer('require.cjs')],
  ['type-check', typeCheck],
  ['the alkblobs command', runCommand]
]

/** Runs the steps and gives each with its outcome; those after a failure are not run. */
export async function packCheck() {
  const project = mkdtempSync(join(tmpdir(), 'alkblobs-consumer-'))
  const outcomes = []
  try {
    for (const [name, text] of Object.entries(consumerFiles)) writeFileSync(join(project, name), text)
    for (const [name, step] of steps) {
      const failure = await step(project).then(
        () => undefined,
        error => error.message
      )
      process.stdout.write(
        `${failure === undefined ? 'ok  ' : 'FAIL'} pack: ${name}\n${failure === undefined ? '' : `${failure}\n`}`
      )
      outcomes.push({ name: `pack: ${name}`, passed: failure === undefined })
      if (failure !== undefined) break
    }
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
  return outcomes
}

if (isMain(import.meta.url)) {
  await setup()
  process.exitCode = (await packCheck()).every(({ passed }) => passed) ? 0 : 1
}

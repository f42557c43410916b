// Makes a clone ready: the pinned pnpm, all packages, a build. Each step is skipped when nothing it depends on changed, so a
// second run takes well under a second and needs no network.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import {
  cache,
  environment,
  inRoot,
  isMain,
  packages,
  pnpm,
  pnpmEntry,
  pnpmHome,
  pnpmVersion,
  run,
  turbo
} from './workspace.mjs'

const stamp = join(cache, 'installed')

/** Says what is missing, in one line, and ends the process. */
function stop(line, output = '') {
  if (output !== '') process.stderr.write(output)
  process.stderr.write(`\nalkblobs setup: ${line}\n`)
  process.exit(1)
}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19)) stop(`needs Node 20.19 or newer; this is ${process.versions.node}.`)
}

async function installPnpm() {
  if (existsSync(pnpmEntry)) return
  process.stdout.write(`setup: installing pnpm ${pnpmVersion}\n`)
  mkdirSync(pnpmHome, { recursive: true })
  writeFileSync(join(pnpmHome, 'package.json'), '{ "private": true }\n')
  const flags = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error', '--fetch-retries=1']
  const args = ['install', '--prefix', pnpmHome, ...flags, `pnpm@${pnpmVersion}`]
  const { code, output } = await run('npm', args, { cwd: pnpmHome, quiet: true })
  if (code !== 0 || !existsSync(pnpmEntry)) {
    rmSync(pnpmHome, { recursive: true, force: true })
    stop(`could not install pnpm ${pnpmVersion}; the first run needs an npm registry.`, output)
  }
}

/** What an install depends on: the lockfile, every package.json, and the Node that native modules are compiled for. */
function fingerprint() {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${process.versions.modules}\n`)
  const files = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json']
  for (const file of [...files, ...packages().map(each => `${each.folder}/package.json`)]) {
    hash.update(`${file}\n`).update(readFileSync(inRoot(file)))
  }
  return hash.digest('hex')
}

function isInstalled(print) {
  const there = existsSync(inRoot('node_modules', '.modules.yaml')) && existsSync(stamp)
  return there && readFileSync(stamp, 'utf8') === print
}

/** What compiling a native module needs and this machine lacks, in the words of its package manager. */
function missingTools() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const has = (...names) => names.some(name => folders.some(folder => existsSync(join(folder, name))))
  return [
    has('c++', 'g++', 'clang++') ? [] : ['a C++ compiler (g++)'],
    has('make', 'gmake') ? [] : ['make'],
    has('python3', 'python') ? [] : ['python3'],
    environment().npm_config_nodedir === undefined ? ["Node's headers (npm_config_nodedir)"] : []
  ].flat()
}

/** The one line for an install that failed, from what pnpm printed. */
function reasonOf(output) {
  if (/better-sqlite3 install: Failed/.test(output)) {
    const missing = missingTools()
    const need = missing.length === 0 ? 'the compiler says why above' : `missing: ${missing.join(', ')}`
    return `better-sqlite3 could not be compiled; ${need}.`
  }
  if (/OUTDATED_LOCKFILE/i.test(output)) {
    return 'pnpm-lock.yaml does not fit the package.json files; run `npm run pnpm -- install` and commit the lockfile.'
  }
  if (/ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|dns error|error sending request|OFFLINE/i.test(output)) {
    return 'packages are missing and the npm registry cannot be reached; the first run needs it.'
  }
  return 'pnpm install failed; its last lines above say why.'
}

async function installPackages() {
  const print = fingerprint()
  if (isInstalled(print)) return
  process.stdout.write('setup: installing packages (the first time compiles better-sqlite3, about 90 seconds)\n')
  const flags = ['--frozen-lockfile', '--prefer-offline', '--reporter=append-only']
  const { code, output } = await pnpm(['install', ...flags], { env: { CI: 'true' }, quiet: true })
  if (code !== 0) stop(reasonOf(output), output.slice(-4000))
  writeFileSync(stamp, print)
}

async function build() {
  const { code, output } = await turbo(['run', 'build', '--output-logs=errors-only', '--no-color'], { quiet: true })
  if (code !== 0) stop('the build failed; the compiler says why above.', output.slice(-8000))
}

/** Installs what is missing and builds every package; `installs` and `builds` leave a step out. */
export async function setup({ installs = true, builds = true } = {}) {
  requireNode()
  mkdirSync(cache, { recursive: true })
  await installPnpm()
  if (installs) await installPackages()
  if (builds) await build()
}

if (isMain(import.meta.url)) await setup({ builds: !process.argv.includes('--no-build') })

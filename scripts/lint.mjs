// `npm run lint`: format and lint rules, types, unused code, the direction of imports. Runs all four, then fails if one did.

import { existsSync } from 'node:fs'
import { setup } from './setup.mjs'
import { inRoot, isMain, packages, run } from './workspace.mjs'

const sources = () =>
  packages()
    .flatMap(({ folder }) => ['src', 'tests'].map(part => `${folder}/${part}`))
    .filter(folder => existsSync(inRoot(folder)))

const steps = [
  { name: 'format and rules', command: 'biome', args: () => ['check', '--error-on-warnings', '.'] },
  { name: 'types', command: 'tsc', args: () => ['-p', 'tsconfig.json', '--noEmit'] },
  { name: 'unused code', command: 'knip', args: () => ['--no-progress', '--no-config-hints'] },
  { name: 'import directions', command: 'depcruise', args: () => ['--config', '.dependency-cruiser.cjs', ...sources()] }
]

/** Runs every step and returns each with its outcome. */
export async function lint() {
  const outcomes = []
  for (const { name, command, args } of steps) {
    const { code, output } = await run(command, args(), { quiet: true })
    process.stdout.write(`${code === 0 ? 'ok  ' : 'FAIL'} lint: ${name}\n`)
    if (code !== 0) process.stdout.write(`${output}\n`)
    outcomes.push({ name: `lint: ${name}`, passed: code === 0 })
  }
  return outcomes
}

if (isMain(import.meta.url)) {
  await setup({ builds: false })
  const outcomes = await lint()
  process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1
}

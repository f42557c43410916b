// Prints `packages=[…]` for CI: the packages with tests that a change touches, by turbo's own graph. Without a usable base
// commit (the first push of a branch) that is all of them.
import { packages, run, turbo } from './workspace.mjs'

const base = process.argv[2] ?? ''
const known = base !== '' && (await run('git', ['cat-file', '-e', `${base}^{commit}`], { quiet: true })).code === 0
const env = known ? { TURBO_SCM_BASE: base } : {}
const args = ['run', 'test', '--dry=json', ...(known ? ['--affected'] : [])]
const { code, output } = await turbo(args, { env, quiet: true })
if (code !== 0) {
  process.stderr.write(output)
  process.exit(1)
}

const plan = JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1))
const touched = new Set(plan.packages)
const tested = packages().filter(({ json }) => json.scripts?.test !== undefined && touched.has(json.name))
process.stdout.write(`packages=${JSON.stringify(tested.map(({ json }) => json.name))}\n`)

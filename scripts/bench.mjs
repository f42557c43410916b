// `npm run bench`: builds, then runs the benchmarks; arguments such as --quick and --json go through.
import { existsSync } from 'node:fs'
import { setup } from './setup.mjs'
import { inRoot, run } from './workspace.mjs'

const target = inRoot('bench', 'src', 'main.mjs')
if (!existsSync(target)) {
  process.stderr.write('alkblobs bench: bench/src/main.mjs is missing.\n')
  process.exit(1)
}
await setup()
process.exitCode = (await run(process.execPath, [target, ...process.argv.slice(2)], { inherit: true })).code

// `npm run conformance`: every column over every row, printed as a matrix. The columns are in packages/columns. With
// `-- --check` nothing is run: the report of the last test run is printed and held against the same gate.
import { setup } from './setup.mjs'
import { pnpm } from './workspace.mjs'

await setup()
const args = ['--silent', '--filter', '@alkblobs/columns', 'run', 'conformance', ...process.argv.slice(2)]
process.exitCode = (await pnpm(args, { inherit: true })).code

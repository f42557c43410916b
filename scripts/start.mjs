// `npm start`: sets the clone up and shows the store at work on the repository's own files. With arguments it is the
// command itself: `npm start -- stat blake3:…`.
import { existsSync } from 'node:fs'
import { setup } from './setup.mjs'
import { inRoot, run } from './workspace.mjs'

const args = process.argv.slice(2)
await setup()

const target = args.length === 0 ? inRoot('scripts', 'demo.mjs') : inRoot('packages', 'cli', 'dist', 'main.js')
if (!existsSync(target)) {
  process.stderr.write(`alkblobs start: ${target} is missing; run \`npm run build\`.\n`)
  process.exit(1)
}
// An interrupt goes to the whole process group: the child ends its work and this script passes its exit code on.
process.on('SIGINT', () => {})
const { code, signal } = await run(process.execPath, [target, ...args], { cwd: process.cwd(), inherit: true })
process.exitCode = signal === 'SIGINT' ? 130 : code

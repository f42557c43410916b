// The pinned pnpm, for adding a dependency or running a package's script: `npm run pnpm -- --filter alkblobs add chalk`.
import { setup } from './setup.mjs'
import { pnpm } from './workspace.mjs'

// An install that changes the lockfile cannot wait for a set-up that insists on it.
const changesLockfile = ['install', 'i', 'add', 'remove', 'rm', 'update', 'up'].some(each =>
  process.argv.includes(each)
)
await setup({ builds: false, installs: !changesLockfile })
process.exitCode = (await pnpm(process.argv.slice(2), { inherit: true })).code

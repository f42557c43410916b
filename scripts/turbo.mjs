// Turbo as this workspace runs it, with the pinned pnpm in its path: `node scripts/turbo.mjs run test --filter=alkblobs`.
import { setup } from './setup.mjs'
import { turbo } from './workspace.mjs'

await setup({ builds: false })
process.exitCode = (await turbo(process.argv.slice(2), { inherit: true })).code

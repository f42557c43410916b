// Looks for the fault kit in a tarball: among its dependencies, and in what its code says.
import { run } from './workspace.mjs'

export const faultKit = '@alkblobs/faults'
const kinds = ['dependencies', 'optionalDependencies', 'peerDependencies', 'bundledDependencies']
/** What only the kit has any use for: its name, its plan, its variables, and doors through which a fault could be let in. */
const traces = /@alkblobs\/faults|\bFaultPlan\b|ALKBLOBS_FAULTS|TOXIPROXY|fault-injection|\binjectFault|\bfaultHook/

/** What the tarball has of the kit, in a few words; `undefined` if nothing. */
export async function faultsIn(tarball) {
  const manifest = JSON.parse(await tar(['-xzOf', tarball, 'package/package.json']))
  const leads = kinds.filter(kind => JSON.stringify(manifest[kind] ?? {}).includes(faultKit))
  if (leads.length > 0) return `the fault kit among its ${leads.join(', ')}`
  const files = (await tar(['-tzf', tarball])).split('\n').filter(file => /\.(js|mjs|cjs|d\.ts)$/.test(file))
  if (files.length === 0) throw new Error(`${tarball} holds no code that could be looked at`)
  const found = traces.exec(await tar(['-xzOf', tarball, ...files]))
  return found === null ? undefined : `a trace of the fault kit: ${found[0]}`
}

async function tar(args) {
  const { code, output } = await run('tar', args, { quiet: true })
  if (code !== 0) throw new Error(output)
  return output
}

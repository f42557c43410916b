/**
 * Which calls of a configuration are no scheduling points, because they commute with everything that anybody can do there. It
 * is a matter of the whole configuration: what could tell the order must not be in it.
 *
 * - The record and the claim of a pool that is there are written by nobody: reading them gives the same at any time.
 * - Where no time passes and nobody ends, no row expires. Then `maintain` finds nothing and does nothing, and a stage with its half
 *   body is its writer's alone until `publish` or `unstage` (which are points): no other call reads or writes a row or body of
 *   that stage, unless something looks through all of them.
 * - Where one sequence alone takes leases, nobody else can see whether it has one; an inline lease opens the epoch, which
 *   everybody sees.
 * - References that nobody writes are the same whenever they are asked for, where no time passes in between.
 *
 * With a planted bug none of this is taken for granted, and every call is a point.
 */
import type { Configuration, Use } from './configuration.js'

export type Stillness = ReadonlySet<string>

export function stillnessOf(configuration: Configuration, isTrusted: boolean): Stillness {
  const { isVirgin = false, events = [], form, actors } = configuration
  const still = new Set<string>()
  if (!isVirgin) for (const call of ['meta.read', 'meta.compareAndSet', 'claimed', 'claim']) still.add(call)
  if (!isTrusted) return still
  const using = (use: Use) => actors.filter(({ does }) => does.some(({ uses = [] }) => uses.includes(use))).length
  if (events.length === 0) {
    still.add('maintain')
    if (using('leavings') === 0) for (const call of ['stage', 'staged', 'create', 'write', 'seal']) still.add(call)
    if (form === 'durable' && using('lease') < 2) still.add('lease').add('lease.release')
  }
  if (using('references') === 0 && events.length === 0) still.add('references')
  return still
}

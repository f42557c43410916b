/** Keys on the command line. */
import { isKey } from '@alkblobs/core'
import { UsageError } from './exit-codes.js'
import { printable } from './format.js'

/** Reads one `<key>`. @throws UsageError that says which argument is no key, and what it lacks. */
export function keyArgument(value: string): string {
  if (isKey(value)) return value
  throw new UsageError(`"${printable(value)}" is not a blob key: ${missingIn(value)}`)
}

/** Reads one more `<key...>`. @throws UsageError like `keyArgument`. */
export function keyArguments(value: string, others: readonly string[] = []): readonly string[] {
  return [...others, keyArgument(value)]
}

/** People copy digests without their prefix, cut them off, or paste what another program printed in capitals. */
function missingIn(value: string): string {
  if (/^[0-9a-f]{64}$/i.test(value)) return `its algorithm is missing, as in blake3:${value.toLowerCase()}`
  if (isKey(value.toLowerCase())) return 'its letters are lower-case'
  return 'expected "blake3:" or "sha256:" and 64 lower-case hexadecimal digits'
}

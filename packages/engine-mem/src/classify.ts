/** Names the few errors that memory can throw. */
import { EngineFault, type ErrorCode } from '@alkblobs/core/engine'

export function classify(error: unknown): ErrorCode {
  if (error instanceof EngineFault) return error.code
  // V8 throws it when a buffer cannot be allocated; nothing else here works with ranges.
  if (error instanceof RangeError) return 'full'
  return 'unknown'
}

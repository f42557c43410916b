/** The contents of the workers, for the test itself. */
import { createHash } from 'node:crypto'

/** The bytes of a name, as every worker makes them. */
export function contentOf(name: string, length: number): Buffer {
  return createHash('shake256', { outputLength: length }).update(name).digest()
}

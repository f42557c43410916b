/** The only way in which a name gets into a statement. */
import { InvalidArgumentError } from '@alkblobs/core/engine'

/** NAMEDATALEN - 1 of a server as it is built by default; a longer name would be cut silently, and two become one. */
const LENGTH_MAX = 63

/** The name in quotes. @throws InvalidArgumentError for what is no name. */
export function quoteIdentifier(name: string): string {
  const isName =
    typeof name === 'string' && name !== '' && !name.includes('\0') && Buffer.byteLength(name) <= LENGTH_MAX
  if (!isName) throw new InvalidArgumentError('name', `a name of 1 to ${LENGTH_MAX} bytes`)
  return `"${name.replaceAll('"', '""')}"`
}

/** `"schema"."name"`. */
export function qualified(schema: string, name: string): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`
}

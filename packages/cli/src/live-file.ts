/**
 * Live files: the keys that must stay, one a line. Blank lines and lines that start with # are skipped, and white space
 * around a key does not matter. Anything else ends the reading with its line number: a typo here would be a deleted blob
 * there.
 */
import { isKey } from '@alkblobs/core'
import { UsageError } from './exit-codes.js'
import { printable } from './format.js'

/** Longest line that is still read: a key has 71 characters, the rest is room for a comment. */
const LINE_LENGTH_MAX = 4096
const SHOWN_MAX = 40

/** A line that is no key. `line` counts from 1. */
export class LiveFileError extends UsageError {
  readonly line: number

  constructor(line: number, found: string) {
    const shown = found.length > SHOWN_MAX ? `${found.slice(0, SHOWN_MAX)}…` : found
    super(`line ${line} of the live list is not a key: ${printable(JSON.stringify(shown))}; nothing was removed`)
    this.name = 'LiveFileError'
    this.line = line
  }
}

/**
 * Reads the keys of a live file from its bytes, in whatever chunks they come.
 * @throws LiveFileError at the first line that is neither a key, nor blank, nor a comment.
 */
export async function* parseLiveFile(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<string> {
  // Bytes that are not UTF-8 become replacement characters, which no key has: they are reported as the line they are in.
  const decoder = new TextDecoder()
  let line = 0
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) {
      const key = keyOf(text, ++line)
      if (key !== undefined) yield key
    }
    if (rest.length > LINE_LENGTH_MAX) throw new LiveFileError(line + 1, rest)
  }
  const last = keyOf(rest + decoder.decode(), line + 1)
  if (last !== undefined) yield last
}

function keyOf(text: string, line: number): string | undefined {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.startsWith('#')) return undefined
  if (!isKey(trimmed)) throw new LiveFileError(line, trimmed)
  return trimmed
}

/**
 * Byte ranges as HTTP writes them, both ends inclusive:
 *
 *   0-99   the first hundred bytes
 *   100-   from the hundred-and-first byte to the end
 *   -100   the last hundred bytes
 */
import { CommandError, EXIT, UsageError } from './exit-codes.js'

/** A range as asked for; `last` absent means to the end. */
export type Range =
  | { readonly kind: 'from'; readonly first: number; readonly last?: number }
  | { readonly kind: 'suffix'; readonly length: number }

const WRITTEN = /^(\d*)-(\d*)$/

/**
 * Reads a range.
 * @throws UsageError for anything else, for a range that ends before it starts and for one of no bytes.
 */
export function parseRange(text: string): Range {
  const [, first = '', last = ''] = WRITTEN.exec(text) ?? []
  if (first === '' && last === '') {
    throw new UsageError('--range takes 0-99 (both inclusive), 100- (to the end) or -100 (the last 100 bytes)')
  }
  if (first === '') {
    const length = position(last)
    if (length === 0) throw new UsageError('--range -0 asks for no bytes')
    return { kind: 'suffix', length }
  }
  const start = position(first)
  if (last === '') return { kind: 'from', first: start }
  const end = position(last)
  if (end < start) throw new UsageError(`--range ${start}-${end} ends before it starts`)
  return { kind: 'from', first: start, last: end }
}

function position(digits: string): number {
  const value = Number(digits)
  if (!Number.isSafeInteger(value)) throw new UsageError('--range is beyond the longest blob there can be')
  return value
}

/**
 * The part of a blob of `size` bytes that a range asks for, `end` exclusive; an end past the blob's is the blob's.
 * @throws CommandError when the range starts past the end.
 */
export function resolveRange(range: Range, size: number): { readonly start: number; readonly end: number } {
  if (range.kind === 'suffix') return { start: Math.max(0, size - range.length), end: size }
  if (range.first >= size) {
    throw new CommandError(EXIT.failed, `the range starts at byte ${range.first}, and the blob has ${size} bytes`)
  }
  return { start: range.first, end: range.last === undefined ? size : Math.min(size, range.last + 1) }
}

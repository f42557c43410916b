/** Ranges: `Blob.slice` arithmetic, with an error where `Blob.slice` would guess. */

/** A part of a blob: `start` inclusive, `end` exclusive, `0 <= start <= end <= length`. */
export interface Range {
  readonly start: number
  readonly end: number
}

/**
 * Clamps a range to a length. Negative bounds count from the end, infinities and integers past the end clamp, a start
 * past the end of the range gives an empty one.
 * @throws TypeError for a bound that is no number, RangeError for NaN and fractions.
 */
export function clampRange(length: number, start?: number, end?: number): Range {
  const from = clampBound(length, start === undefined ? 0 : start, 'start')
  const to = clampBound(length, end === undefined ? length : end, 'end')
  return { start: from, end: Math.max(from, to) }
}

function clampBound(length: number, bound: unknown, name: string): number {
  if (typeof bound !== 'number')
    throw new TypeError(`${name} must be a number, not a ${bound === null ? 'null' : typeof bound}`)
  if (bound === Number.POSITIVE_INFINITY) return length
  if (bound === Number.NEGATIVE_INFINITY) return 0
  if (!Number.isInteger(bound)) throw new RangeError(`${name} must be a whole number`)
  return bound < 0 ? Math.max(length + bound, 0) : Math.min(bound, length)
}

/** The middle of a few figures, and how far they lie apart. */

/** Median, least and greatest of at least one figure. */
export function summary(figures) {
  const sorted = [...figures].sort((a, b) => a - b)
  const half = sorted.length >> 1
  const median = sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2
  return { median, min: sorted[0], max: sorted[sorted.length - 1] }
}

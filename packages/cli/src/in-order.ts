/** Bounded concurrency that keeps order: several pieces of work run at once, their results come in the order of the items. */

/**
 * Runs `work` on every item, at most `limit` at once. Items are taken only as there is room. When one fails, the failure is
 * thrown once everything that had begun has settled.
 */
export async function* inOrder<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
  work: (item: T) => Promise<R>
): AsyncGenerator<R> {
  const running: Promise<R>[] = []
  try {
    for await (const item of items) {
      const result = work(item)
      // A failure is thrown when its turn comes; until then it must not count as unhandled.
      result.catch(() => {})
      running.push(result)
      if (running.length >= limit) yield* first(running)
    }
    while (running.length > 0) yield* first(running)
  } finally {
    await Promise.allSettled(running)
  }
}

async function* first<R>(running: Promise<R>[]): AsyncGenerator<R> {
  const next = running.shift()
  if (next !== undefined) yield await next
}

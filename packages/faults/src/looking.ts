/** Looks until it sees something; `undefined` when the time is up. */
export async function lookUntil<T>(look: () => Promise<T | undefined>, limitMs: number): Promise<T | undefined> {
  for (const end = performance.now() + limitMs; ; ) {
    const seen = await look()
    if (seen !== undefined || performance.now() > end) return seen
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

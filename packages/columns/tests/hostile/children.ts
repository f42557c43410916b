/** Child processes for what would end, stop or starve the process of the test itself. */
import { Child } from '../processes/children.js'

/** Runs a worker of this folder to its end and answers all it said. @throws if it ends badly, or not within the limit. */
export async function said<T>(
  script: string,
  given: object,
  { limitMs = 15_000, node = [] }: { readonly limitMs?: number; readonly node?: readonly string[] } = {}
): Promise<T[]> {
  const child = new Child(`../../hostile/workers/${script}`, { given, limitMs, node })
  await child.finish()
  return child.rest<T>()
}

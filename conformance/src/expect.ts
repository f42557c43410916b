/**
 * The suite's own assertions. Each names the property it stands for, so that a failing row reads as a sentence whatever
 * runner executed it. No test runner is imported here or in any row.
 */
import { inspect, isDeepStrictEqual } from 'node:util'

/** What a row throws when its property does not hold: the message names the property, what was expected and what was found. */
export class PropertyViolation extends Error {
  readonly property: string

  constructor(property: string, expected: string, found: string, cause?: unknown) {
    super(`${property}: expected ${expected}, found ${found}`, cause === undefined ? undefined : { cause })
    this.name = 'PropertyViolation'
    this.property = property
  }
}

const show = (value: unknown) =>
  inspect(value, { depth: 3, breakLength: 120, maxArrayLength: 12, maxStringLength: 200 })

/** Fails unless `condition` is true. */
export function holds(condition: boolean, property: string, found = 'the opposite'): asserts condition {
  if (!condition) throw new PropertyViolation(property, 'it to hold', found)
}

/** Fails unless both are structurally equal. */
export function equal(actual: unknown, expected: unknown, property: string): void {
  if (!isDeepStrictEqual(actual, expected)) throw new PropertyViolation(property, show(expected), show(actual))
}

/** Fails unless the value is there, and answers it. */
export function present<T>(value: T | undefined | null, property: string): T {
  if (value === undefined || value === null) throw new PropertyViolation(property, 'a value', show(value))
  return value
}

/** Fails unless both hold the same bytes; says where they part. */
export function sameBytes(actual: Uint8Array, expected: Uint8Array, property: string): void {
  if (actual.byteLength !== expected.byteLength) {
    throw new PropertyViolation(property, `${expected.byteLength} bytes`, `${actual.byteLength} bytes`)
  }
  if (Buffer.compare(actual, expected) === 0) return
  const at = actual.findIndex((byte, index) => byte !== expected[index])
  throw new PropertyViolation(property, `byte ${expected[at]} at ${at}`, `byte ${actual[at]}`)
}

/** What a refusal must look like: a stable code, or any test of the error. */
export type Refusal = string | ((error: unknown) => boolean)

/** The `code` of an error, if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** An error in one line; the whole of it travels as the cause. */
const named = (error: unknown) =>
  error instanceof Error ? `${error.name} (${codeOf(error) ?? 'no code'}): ${error.message}` : show(error)

const matches = (error: unknown, refusal: Refusal) =>
  typeof refusal === 'string' ? codeOf(error) === refusal : refusal(error)

/** Fails unless `attempt` rejects (or throws) as `refusal` says; answers the error. */
export async function refuses(attempt: () => unknown, refusal: Refusal, property: string): Promise<unknown> {
  const expected = typeof refusal === 'string' ? `a rejection with ${refusal}` : 'a rejection of the right kind'
  let value: unknown
  try {
    value = await attempt()
  } catch (error) {
    if (matches(error, refusal)) return error
    throw new PropertyViolation(property, expected, named(error), error)
  }
  throw new PropertyViolation(property, expected, `success with ${show(value)}`)
}

/** Longest wait for something that has to happen without anybody's further help, in milliseconds. */
const BECOMES_WITHIN_MS = 5_000

/** Fails unless the condition comes true by itself, soon; it is looked at in every turn of the event loop. */
export async function becomes(condition: () => Promise<boolean>, property: string): Promise<void> {
  for (const end = performance.now() + BECOMES_WITHIN_MS; !(await condition()); ) {
    if (performance.now() > end) throw new PropertyViolation(property, 'it to come true', 'that it did not')
    await new Promise<void>(done => setImmediate(done))
  }
}

/** Waits for a promise and answers how it ended, so that a row can look at several ends together. */
export async function settled<T>(promise: PromiseLike<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await promise }
  } catch (error) {
    return { error }
  }
}

/** Under which operation of the facade an engine is called: what is awaited inside `during` belongs to it, however deep. */
import { AsyncLocalStorage } from 'node:async_hooks'

const current = new AsyncLocalStorage<string>()

/** Runs work as part of the operation named, such as `put`. */
export function during<T>(operation: string, work: () => T): T {
  return current.run(operation, work)
}

/** The operation that is under way here, or `undefined`: a timer, or whoever did not say. */
export function operationNow(): string | undefined {
  return current.getStore()
}

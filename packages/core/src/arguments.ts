/** Checks of arguments, each a sentence of its error. Everything a caller passes is looked at here, once. */
import { InvalidArgumentError } from './errors.js'

/** Bounds of a whole number, both inclusive. */
interface Bounds {
  readonly min: number
  readonly max?: number
}

/** A whole number within bounds. */
export function wholeNumber(name: string, value: unknown, { min, max = Number.MAX_SAFE_INTEGER }: Bounds): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    throw new InvalidArgumentError(name, `a whole number from ${min} to ${max}`)
  }
  return value
}

/** The same where the argument may be left out. */
export function optionalWholeNumber(name: string, value: unknown, fallback: number, bounds: Bounds): number {
  return value === undefined ? fallback : wholeNumber(name, value, bounds)
}

/** An options object, where leaving it out means an empty one. */
export function optionsObject<T extends object>(name: string, value: T | undefined): Partial<T> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidArgumentError(name, 'an object')
  return value
}

export function optionalSignal(name: string, value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined
  if (!(value instanceof AbortSignal)) throw new InvalidArgumentError(name, 'an AbortSignal')
  return value
}

export function optionalBoolean(name: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value !== 'boolean') throw new InvalidArgumentError(name, 'true or false')
  return value
}

export function optionalFunction<T>(name: string, value: T | undefined): T | undefined {
  if (value !== undefined && typeof value !== 'function') throw new InvalidArgumentError(name, 'a function')
  return value
}

/** An object that can be iterated and is not a string, whose letters are nobody's list. */
export function iterable<T>(name: string, value: Iterable<T>): Iterable<T> {
  if (typeof value !== 'object' || value === null || typeof value[Symbol.iterator] !== 'function') {
    throw new InvalidArgumentError(name, 'an iterable of keys')
  }
  return value
}

/** The bytes that rows store: reproducible, different for every seed, of the lengths where storage engines break. */
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import type { StoreFactory } from './factory.js'

/** `length` incompressible bytes; the same for the same seed, different for another. */
export function bytesOf(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  let state = (seed * 2_654_435_761 + 0x9e3779b9) >>> 0 || 1
  for (let index = 0; index < length; index += 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    bytes[index] = state & 0xff
  }
  return bytes
}

/** A length, and the boundary it is there for. */
export interface InterestingSize {
  readonly length: number
  readonly boundary: string
}

const around = (edge: number, boundary: string): InterestingSize[] => [
  { length: edge - 1, boundary: `one below ${boundary}` },
  { length: edge, boundary: `exactly ${boundary}` },
  { length: edge + 1, boundary: `one above ${boundary}` }
]

/** A threshold above this is not worth materialising at its edges. */
const BOUNDARY_LENGTH_MAX = 8 * 1024 * 1024

/** Every length at which some engine, tier or hash changes what it does. */
export function interestingSizes(threshold?: number): readonly InterestingSize[] {
  return [
    { length: 0, boundary: 'empty' },
    { length: 1, boundary: 'the shortest that is not empty' },
    ...around(1024, 'a BLAKE3 chunk'),
    ...around(2048, 'a page of a PostgreSQL large object'),
    ...(threshold !== undefined && threshold > 1 && threshold <= BOUNDARY_LENGTH_MAX
      ? around(threshold, 'the threshold')
      : []),
    ...around(WINDOW_LENGTH, 'a read window'),
    { length: 3 * WINDOW_LENGTH + 7, boundary: 'several windows and a rest' }
  ]
}

/** Whether stores of this factory accept a blob of that length. */
export function accepts(factory: StoreFactory, length: number): boolean {
  return !factory.traits.includes('kv-only') || factory.threshold === undefined || length <= factory.threshold
}

/** The content matrix of a factory: every interesting size, and runs of the two bytes that are confused with "nothing". */
export function contentMatrix(
  factory: StoreFactory
): readonly { readonly name: string; readonly bytes: Uint8Array<ArrayBuffer> }[] {
  const sizes = interestingSizes(factory.threshold).filter(({ length }) => accepts(factory, length))
  return [
    ...sizes.map(({ length, boundary }) => ({
      name: `${length} bytes (${boundary})`,
      bytes: bytesOf(length, length + 7)
    })),
    { name: '3000 bytes of 0x00', bytes: new Uint8Array(3000) },
    { name: '3000 bytes of 0xff', bytes: new Uint8Array(3000).fill(0xff) }
  ]
}

/** One modest length for each tier that the factory's stores have, kv first. */
export function tierLengths(factory: StoreFactory): readonly number[] {
  if (!factory.traits.includes('dual-tier') || factory.threshold === undefined) return [100]
  return [Math.min(100, factory.threshold), factory.threshold + 500]
}

/** The longest content worth storing in an ordinary row: several windows, or what a kv-only store accepts. */
export function longLength(factory: StoreFactory): number {
  const several = 2 * WINDOW_LENGTH + 11
  return accepts(factory, several) ? several : (factory.threshold ?? several)
}

/** The suite's own sources and sizes, for any bytes: a suite that feeds wrong bytes judges nothing. */
import { bytesOf, CHUNKINGS, interestingSizes, sourcesOf } from '@alkblobs/conformance'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

/** The bytes a source carries, read the plain way of the platform. */
async function bytesIn(content: unknown): Promise<Uint8Array> {
  if (content instanceof Blob) return new Uint8Array(await content.arrayBuffer())
  if (content instanceof ArrayBuffer) return new Uint8Array(content)
  if (content instanceof Uint8Array) return content
  const parts: Uint8Array[] = []
  for await (const part of content as AsyncIterable<Uint8Array>) parts.push(part)
  return Buffer.concat(parts)
}

const contents = fc.oneof(
  fc.uint8Array({ maxLength: 3000 }),
  fc.constantFrom(0, 1, 699, 700, 701, 65_536, 90_999, 300_001).map(length => bytesOf(length))
)

describe('the sources of the suite', () => {
  test('all carry exactly the bytes they were made from, every time they are made', async () => {
    await fc.assert(
      fc.asyncProperty(contents, async bytes => {
        for (const source of sourcesOf(bytes)) {
          for (let time = 0; time < 2; time += 1) {
            expect(Buffer.compare(await bytesIn(source.make()), bytes), source.name).toBe(0)
          }
        }
      }),
      { numRuns: 40 }
    )
  })

  test('are cut into chunks that are copies', () => {
    fc.assert(
      fc.property(contents, bytes => {
        const original = bytes.slice()
        for (const chunked of Object.values(CHUNKINGS)) for (const chunk of chunked(bytes)) chunk.fill(0xaa)
        expect(Buffer.compare(bytes, original)).toBe(0)
      }),
      { numRuns: 40 }
    )
  })

  test('differ with their seed and repeat with it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 16, max: 2000 }), fc.nat(5000), fc.nat(5000), (length, one, other) => {
        expect(bytesOf(length, one)).toEqual(bytesOf(length, one))
        if (one !== other) expect(Buffer.compare(bytesOf(length, one), bytesOf(length, other))).not.toBe(0)
      })
    )
  })

  test('are tried at every length around a threshold, once each at most three times', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 * 1024 * 1024 }), threshold => {
        const lengths = interestingSizes(threshold).map(({ length }) => length)
        for (const edge of [threshold - 1, threshold, threshold + 1]) expect(lengths).toContain(edge)
        expect(lengths.every(length => length >= 0)).toBe(true)
      })
    )
  })
})

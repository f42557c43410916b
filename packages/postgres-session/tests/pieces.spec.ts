/** What comes in pieces takes as much memory as it has bytes. */
import { expect, test, vi } from 'vitest'
import { Pieces } from '../src/pieces.js'

test('a part is what came up to its end, in whatever pieces, and the rest is left', () => {
  const all = Buffer.from('of the server')
  for (let size = 1; size <= all.length + 1; size++) {
    const pieces = new Pieces()
    let left = 0
    for (let at = 0; at < all.length; at += size) {
      const piece = Buffer.from(all.subarray(at, at + size))
      left += piece.length - pieces.add(piece, 0, 6)
      piece.fill('#')
    }
    expect({ left, length: pieces.length }).toEqual({ left: all.length - 6, length: 6 })
    expect(pieces.take().toString()).toBe('of the')
    expect(pieces.length).toBe(0)
  }
})

test('it takes memory for what has come, no more than twice that, and a few times', () => {
  const allocated = vi.spyOn(Buffer, 'allocUnsafe')
  const pieces = new Pieces()
  for (let come = 1; come <= 100_000; come++) pieces.add(Buffer.from('x'), 0, 2 ** 30)
  const sizes = allocated.mock.calls.map(([size]) => size)
  allocated.mockRestore()
  expect(sizes.length).toBeLessThan(20)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(200_000)
})

// Windows are read ahead of a consumer that goes on: one, never more, and what becomes of it is told at its turn.
import { open } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import { describe, expect, it, vi } from 'vitest'
import { call, claimedRoot, openDescriptors, putBody, temporaryFolder } from './support.js'

const WINDOWS = 4
const BODY = Buffer.concat(Array.from({ length: WINDOWS }, (_, n) => Buffer.alloc(WINDOW_LENGTH, n + 1)))

/** A body of four windows, and the windows that were asked of its file so far; `before` may hold or fail the read of one. */
async function reading(before: (window: number) => Promise<unknown> = async () => {}) {
  const asked: number[] = []
  const watched: typeof open = async (...given) => {
    const handle = await open(...given)
    const read = handle.read.bind(handle)
    handle.read = (async (buffer: Buffer, offset: number, length: number, position: number) => {
      asked.push(position / WINDOW_LENGTH + 1)
      await before(position / WINDOW_LENGTH + 1)
      return read(buffer, offset, length, position)
    }) as typeof handle.read
    return handle
  }
  const { bodies } = await claimedRoot(await temporaryFolder(), { open: watched })
  const locator = await putBody(bodies, [BODY])
  // The claim has been read from a file too.
  asked.length = 0
  const reader = bodies.read(locator, { start: 0, end: BODY.length }, call)[Symbol.asyncIterator]()
  /** Which window came; what is read ahead has begun then. */
  const pull = async () => {
    const { value } = await reader.next()
    await turn()
    return (value as Uint8Array | undefined)?.[0]
  }
  return { asked, pull, end: () => reader.return?.() }
}

describe('reading ahead', () => {
  it('begins with the second pull, goes one window ahead, and stops at the end', async () => {
    const { asked, pull } = await reading()
    expect(await pull()).toBe(1)
    expect(asked).toEqual([1])
    expect(await pull()).toBe(2)
    expect(asked).toEqual([1, 2, 3])
    expect(await pull()).toBe(3)
    expect(asked).toEqual([1, 2, 3, 4])
    expect(await pull()).toBe(4)
    expect(await pull()).toBeUndefined()
    expect(asked).toEqual([1, 2, 3, 4])
  })

  it('that fails fails the pull that wants the window, not the one before it, and nobody else', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    try {
      const broken = new Error('EIO')
      const { pull } = await reading(async window => {
        if (window === 3) throw broken
      })
      const before = await openDescriptors()
      expect([await pull(), await pull()]).toEqual([1, 2])
      await expect(pull()).rejects.toBe(broken)
      expect(await pull()).toBeUndefined()
      expect(await openDescriptors()).toBe(before)
      expect(unhandled).not.toHaveBeenCalled()
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  })

  it.each(['well', 'badly'])('that ends %s after its consumer has gone closes the file', async how => {
    let settle = () => {}
    const held = new Promise<void>((resolve, reject) => {
      settle = how === 'well' ? resolve : () => reject(new Error('EIO'))
    })
    const { asked, pull, end } = await reading(async window => {
      if (window === 3) await held
    })
    const before = await openDescriptors()
    expect([await pull(), await pull()]).toEqual([1, 2])
    expect(asked).toEqual([1, 2, 3])
    const ended = end()
    settle()
    expect(await ended).toEqual({ done: true, value: undefined })
    expect(await openDescriptors()).toBe(before)
  })
})

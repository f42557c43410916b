import { describe, expect, test } from 'vitest'
import { Answers, type Row } from '../src/answers.js'

const int2 = (value: number) => Buffer.from([value >> 8, value & 255])
const int4 = (value: number) => Buffer.from([value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255])
const message = (letter: string, ...parts: readonly Uint8Array[]) => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from(letter), int4(body.length + 4), body])
}
const row = (...values: readonly (string | null)[]) =>
  message(
    'D',
    int2(values.length),
    ...values.flatMap(value => (value === null ? [int4(-1)] : [int4(value.length), Buffer.from(value)]))
  )

/** What a listener hears of these pieces: rows, letters with bodies, and how many bytes were left when it was told to stop. */
function heard(pieces: readonly Buffer[], stopAfter = Number.POSITIVE_INFINITY) {
  const all: unknown[] = []
  const answers = new Answers({
    room: (_, length) => Buffer.allocUnsafeSlow(length),
    row: (values: Row) => all.push(values.map(value => value?.toString() ?? null)),
    message: (letter, body) => all.push(`${String.fromCharCode(letter)} ${body.toString()}`)
  })
  let left = 0
  for (const piece of pieces) {
    // Lent: what is kept of it would be seen to change.
    const lent = Buffer.from(piece)
    left += lent.length - answers.take(lent, () => all.length >= stopAfter)
    lent.fill('#')
  }
  return { all, left }
}

describe('messages of the server', () => {
  const whole = Buffer.concat([
    row('one', null, ''),
    message('C', Buffer.from('SELECT 1')),
    message('n'),
    row(),
    row('x')
  ])
  const all = [['one', null, ''], 'C SELECT 1', 'n ', [], ['x']]

  test('are read wherever they are cut', () => {
    for (let cut = 0; cut <= whole.length; cut++) {
      for (let next = cut; next <= whole.length; next++) {
        const pieces = [whole.subarray(0, cut), whole.subarray(cut, next), whole.subarray(next)]
        expect(heard(pieces), `${cut}, ${next}`).toEqual({ all, left: 0 })
      }
    }
    expect(heard(Array.from(whole, byte => Buffer.from([byte])))).toEqual({ all, left: 0 })
  })

  test('are left alone behind the one after which nobody listens', () => {
    const behind = row().length + row('x').length
    expect(heard([whole], 3)).toEqual({ all: all.slice(0, 3), left: behind })
  })

  test('whose lengths contradict each other are refused', () => {
    const long = row('abc')
    long.writeInt32BE(4, 7)
    const short = row('abc')
    short.writeInt32BE(2, 7)
    const endless = message('C')
    endless.writeInt32BE(2 ** 30 + 5, 1)
    const negative = message('C')
    negative.writeInt32BE(3, 1)
    for (const wrong of [long, short, endless, negative]) expect(() => heard([wrong])).toThrow('cannot be read')
  })
})

/** Exchanges with a server that is broken or means ill: nothing of what it says may hang, or be taken for an answer. */
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Channel } from '../src/channel.js'
import { Lane } from '../src/lane.js'

const message = (letter: string, body: Uint8Array | string = '') => {
  const bytes = Buffer.from(body)
  const head = Buffer.alloc(5, letter)
  head.writeInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}
const READY = message('Z', 'I')
const done = (tag: string) => Buffer.concat([message('2'), message('C', `${tag}\0`)])
const row = (value: string) => {
  const head = Buffer.alloc(6)
  head.writeInt16BE(1, 0)
  head.writeInt32BE(value.length, 2)
  return message('D', Buffer.concat([head, Buffer.from(value)]))
}

/** A lane over a socket that leads nowhere: what it asks is lost, and the test says what comes back. */
function lane() {
  const killed: unknown[] = []
  const channel = new Channel(reason => killed.push(reason))
  const socket = Object.assign(new EventEmitter(), { cork() {}, uncork() {}, write: () => true })
  channel.carry(socket as unknown as Socket, true)
  const over = new Lane(channel, reason => killed.push(reason))
  return { over, killed, say: (...messages: Buffer[]) => channel.take(Buffer.concat(messages)) }
}

const two = [
  { text: 'one', once: true },
  { text: 'two', once: true }
]
const unreadable = expect.objectContaining({ code: 'transient' })

describe('an exchange with a server that is not as it should be', () => {
  test('has an answer for each statement', async () => {
    const { over, killed, say } = lane()
    const asked = over.ask(two)
    say(done('INSERT 0 1'), row('x'), done('CREATE TABLE AS 12'), READY)
    expect((await asked).answers).toEqual([
      { rows: [], command: 'INSERT' },
      { rows: [[Buffer.from('x')]], command: 'CREATE TABLE AS' }
    ])
    expect(killed).toEqual([])
  })

  test.each([
    ['nothing', [READY]],
    ['less than was asked', [done('SELECT 1'), READY]],
    ['more than was asked', [done('SELECT 1'), done('SELECT 1'), done('SELECT 1'), READY]]
  ])('ends the connection if it answers %s without an error', (_, messages) => {
    const { over, killed, say } = lane()
    void over.ask(two)
    say(...messages)
    expect(killed).toEqual([unreadable])
  })

  test('ends the connection if an error has no end', () => {
    const { over, killed, say } = lane()
    void over.ask(two)
    say(message('E', 'SERROR\0C42601'), READY)
    expect(killed).toEqual([unreadable])
  })

  test('ends the connection if its rows do not end', () => {
    const { over, killed, say } = lane()
    void over.ask(two)
    const nulls = message('D', Buffer.concat([Buffer.from([0x7f, 0xff]), Buffer.alloc(4 * 0x7fff, 0xff)]))
    // A value costs at least 128 bytes, and so an answer is too long behind a GiB of them.
    const most = 2 ** 30 / (128 * 0x7fff)
    let rows = 0
    for (say(message('1'), message('2')); killed.length === 0 && rows < 2 * most; rows++) say(nulls)
    expect(killed).toEqual([expect.objectContaining({ code: 'exhausted' })])
    expect(rows).toBeGreaterThan(most / 2)
  })

  test('is read in the time that its length takes, however it is cut and whatever a tag is', async () => {
    const { over, say } = lane()
    const asked = over.ask(two)
    const startedMs = performance.now()
    const long = message('N', Buffer.alloc(16 * 1024 * 1024, 'M'))
    for (let at = 0; at < long.length; at += 4_096) say(long.subarray(at, at + 4_096))
    say(done(`${'0'.repeat(1024 * 1024)}x`), done('COMMIT'), READY)
    expect((await asked).answers[1]?.command).toBe('COMMIT')
    // A fraction of a second; where each piece and each digit is gone through again for every one that follows, minutes.
    expect(performance.now() - startedMs).toBeLessThan(5_000)
  }, 300_000)
})

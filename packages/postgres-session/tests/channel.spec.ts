/** Two who read from one socket: what belongs to whom, however it is cut. */
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Channel } from '../src/channel.js'
import { Lane } from '../src/lane.js'
import { complete, description, message, proof, READY, row } from './fake-server.js'

const notice = message('N', 'SNOTICE\0', 'Mlong enough to be cut\0', '\0')

/** Fails for what does not end with a message. */
function messagesOf(bytes: Buffer): Buffer[] {
  if (bytes.length === 0) return []
  const length = 1 + bytes.readUInt32BE(1)
  expect(bytes.length).toBeGreaterThanOrEqual(length)
  return [bytes.subarray(0, length), ...messagesOf(bytes.subarray(length))]
}

/** A channel whose driver is logged in, and a lane over it. */
function logged() {
  const killed: unknown[] = []
  const driver: string[] = []
  const channel = new Channel(reason => killed.push(reason))
  const socket = Object.assign(new EventEmitter(), { cork() {}, uncork() {}, write: () => true })
  channel.carry(socket as unknown as Socket, true)
  channel.driversSide.on('data', (bytes: Buffer) =>
    driver.push(...messagesOf(bytes).map(each => each.toString('latin1', 0, 1)))
  )
  channel.driversSide.write(Buffer.from('startup'))
  channel.take(Buffer.concat([proof(0), READY]))
  return { channel, driver, killed, lane: new Lane(channel, reason => killed.push(reason)) }
}

const answer = Buffer.concat([message('1'), message('2'), row('x'), complete('SELECT 1'), READY])
const answered = { answers: [{ rows: [[Buffer.from('x')]], command: 'SELECT' }], error: undefined }

describe('what a server says between two turns', () => {
  test('is no answer to the exchange that begins in its midst', async () => {
    for (let cut = 1; cut < notice.length; cut++) {
      const { channel, driver, killed, lane } = logged()
      channel.take(notice.subarray(0, cut))
      const asked = lane.ask([{ text: 'SELECT 1' }])
      channel.take(Buffer.concat([notice.subarray(cut), answer.subarray(0, 3)]))
      channel.take(answer.subarray(3))
      expect(await asked).toEqual(answered)
      expect({ driver, killed }).toEqual({ driver: ['R', 'Z'], killed: [] })
    }
  })

  test('and behind the last answer to an exchange is not the next one’s', async () => {
    for (let cut = 0; cut <= notice.length; cut++) {
      const { channel, killed, lane } = logged()
      const first = lane.ask([{ text: 'SELECT 1' }])
      channel.take(Buffer.concat([answer, notice.subarray(0, cut)]))
      expect(await first).toEqual(answered)
      const second = lane.ask([{ text: 'SELECT 1', once: true }])
      channel.take(Buffer.concat([notice.subarray(cut), answer]))
      expect(await second).toEqual(answered)
      expect(killed).toEqual([])
    }
  })
})

describe('what the driver hears', () => {
  test('is whole messages that are its own, and no setting, notice or notification', () => {
    const all = Buffer.concat([
      message('2'),
      notice,
      row('abc'),
      message('S', 'a\0b\0'),
      message('A', 'n'),
      complete('X'),
      READY
    ])
    for (let cut = 0; cut <= all.length; cut++) {
      const { channel, killed } = logged()
      const heard: Buffer[] = []
      channel.driversSide.on('data', bytes => heard.push(...messagesOf(bytes)))
      for (const piece of [all.subarray(0, cut), all.subarray(cut)]) {
        const lent = Buffer.from(piece)
        channel.take(lent)
        lent.fill('#')
      }
      expect(heard).toEqual([message('2'), row('abc'), complete('X'), READY])
      expect(killed).toEqual([])
    }
  })

  test.each([
    ['a row without a statement', [row('x')]],
    ['a row behind the end of one', [description(20), row('1'), complete('SELECT 1'), row('1')]],
    ['a copy that nobody asked for', [message('G', '\0\0\0')]],
    ['a proof', [proof(0)]],
    ['a message of no kind', [message('?')]]
  ])('is not %s: the connection ends', (_, messages) => {
    const { channel, driver, killed } = logged()
    channel.take(Buffer.concat(messages))
    expect(killed).toEqual([expect.objectContaining({ code: 'transient' })])
    expect(driver).toHaveLength(2 + messages.length - 1)
  })

  test('is no more columns than values, however many answers have them', () => {
    const { channel, killed } = logged()
    const columns = message('T', Buffer.from([0xff, 0xff]), Buffer.alloc(19 * 0xffff))
    for (let times = 0; times < 200 && killed.length === 0; times++) {
      channel.take(columns)
      channel.take(complete('SELECT 0'))
    }
    expect(killed).toEqual([expect.objectContaining({ code: 'exhausted' })])
  })

  test('is one copy, when it has asked for one', () => {
    const { channel, driver, killed } = logged()
    channel.isCopying = true
    channel.take(message('G', '\0\0\0'))
    expect(driver).toEqual(['R', 'Z', 'G'])
    channel.take(message('G', '\0\0\0'))
    expect(killed).toHaveLength(1)
  })

  test('is whatever a trigger says at the login, however long, once it is proved who one is', () => {
    const long = message('N', 'SWARNING\0', 'M', Buffer.alloc(100_000, 'x'), '\0\0')
    for (const [said, kills] of [
      [[proof(0), long, READY], 0],
      [[long, proof(0), READY], 1]
    ] as const) {
      const killed: unknown[] = []
      const channel = new Channel(reason => killed.push(reason))
      channel.driversSide.write(Buffer.from('startup'))
      channel.take(Buffer.concat(said))
      expect(killed).toHaveLength(kills)
    }
  })

  test('is nothing before it has spoken', () => {
    const killed: unknown[] = []
    new Channel(reason => killed.push(reason)).take(proof(0))
    expect(killed).toEqual([expect.objectContaining({ code: 'transient' })])
  })
})

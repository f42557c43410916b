/** Whatever a server says, or becomes of it on the way: every call ends in time, by a name, and nothing of it is left. */
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { complete, description, int4, message, proof, READY, refusal, row } from './fake-server.js'
import { type Game, type Mischief, Player, WAYS } from './games.js'

/** Longest one call may take in the child. */
const WAIT_MS = 200
/** Each round plays so many games at a time, most of which are over at once. */
const GAMES = 24
const ROUNDS = 16

const letters = fc.constantFrom(...'RKSNAEZCDTtn12IGHWdcs3Vv?')
const bytes = fc.uint8Array({ maxLength: 40 }).map(array => Buffer.from(array))
const none = Buffer.from([0, 0, 0])
const known = fc.constantFrom(
  READY,
  complete('COMMIT'),
  complete('SELECT 1'),
  description(20, 25),
  row('1'),
  row('a', 'b', 'c'),
  refusal('42501'),
  message('E', 'SFATAL\0VFATAL\0C57P01\0Mno\0\0'),
  message('E', 'SERROR\0VERROR\0C0A000\0RRevalidateCachedQuery\0Mno\0\0'),
  proof(0),
  proof(3),
  proof(5, 'salt'),
  proof(11, 'r=x,s=AAAA,i=1'),
  proof(11, 'r=x'),
  proof(12, 'v=AAAA'),
  message('T', Buffer.from([0, 1]), 'endless'),
  message('G', none),
  message('W', none),
  message('H', none),
  message('s'),
  message('3'),
  message('t', Buffer.from([0, 9])),
  message('2'),
  message('K', int4(1), int4(2)),
  message('S', '__proto__\0x\0')
)
const any = fc.tuple(letters, bytes).map(([letter, body]) => message(letter, body))
const messages = fc.array(fc.oneof(known, any, bytes), { maxLength: 4 })
const lengths = fc.constantFrom(0, 3, 4, 5, 30_004, 2 ** 30, 2 ** 30 + 4, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1)

const mischief: fc.Arbitrary<Mischief> = fc.oneof(
  fc.record({ kind: fc.constant('change'), at: fc.nat({ max: 60 }), to: fc.nat({ max: 255 }) }),
  fc.record({ kind: fc.constant('letter'), letter: letters }),
  fc.record({ kind: fc.constant('length'), length: lengths }),
  fc.record({ kind: fc.constantFrom('instead', 'behind'), messages, times: fc.constantFrom(1, 1, 1, 2, 500) }),
  fc.record({ kind: fc.constant('end') })
)
const game: fc.Arbitrary<Game> = fc.record({
  way: fc.constantFrom(...WAYS),
  ssl: fc.constantFrom<false | 'prefer'>(false, false, false, 'prefer'),
  mischief: fc.array(fc.tuple(fc.nat({ max: 40 }), mischief), { minLength: 1, maxLength: 3 }),
  isCut: fc.boolean()
})

const named = /^(done|transient|conflict|exhausted|full|denied|pooled|corrupt|unknown|outcome-unknown)$/

test('a process lives through whatever a server says, and every call ends in time, by a name', async () => {
  let player: Player | undefined
  onTestFinished(() => player?.kill())
  const play = async (games: readonly Game[]) => {
    if (player?.isAlive !== true) player = await Player.start()
    return player.play(games, WAIT_MS)
  }
  await fc.assert(
    fc.asyncProperty(fc.array(game, { minLength: 1, maxLength: GAMES, size: 'max' }), async games => {
      expect((await play(games)).filter(end => !named.test(end))).toEqual([])
    }),
    { numRuns: ROUNDS }
  )
  expect(await player?.end()).toEqual({ code: 0, said: '' })
}, 120_000)

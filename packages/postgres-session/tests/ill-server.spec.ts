/** Servers that mean ill, by what they do: the process lives, the call ends by a name, and nothing takes memory without end. */
import { afterAll, beforeEach, expect, test } from 'vitest'
import { int4, message, proof, READY, row } from './fake-server.js'
import { type Game, type Mischief, Player, WAYS } from './games.js'

const WAIT_MS = 300
/** The whole process; what the worst of them would take without bounds is several times as much in this time. */
const RSS_MIB_MAX = 400

let player: Player | undefined
const play = (games: readonly Game[], waitMs: number) => (player as Player).play(games, waitMs)

// One for all, as long as it lives: what one server has done shows in what the others find.
beforeEach(async () => {
  if (player?.isAlive !== true) player = await Player.start()
})
afterAll(() => player?.kill())

const instead = (...messages: Buffer[]): Mischief => ({ kind: 'instead', messages, times: 1 })
const behind = (...messages: Buffer[]): Mischief => ({ kind: 'behind', messages, times: 1 })
const endless = (messages: Iterable<Buffer>): Mischief => ({
  kind: 'behind',
  messages,
  times: Number.POSITIVE_INFINITY
})
const game = (nth: number, what: Mischief, rest: Partial<Game> = {}): Game => ({
  way: 'rows',
  ssl: false,
  mischief: [[nth, what]],
  isCut: false,
  ...rest
})

// Messages of a login by their number: SCRAM wanted, challenge, own proof, proved, setting, key, ready. Then the settings of the session:
// parsed, types, columns; bound, row, complete, ready.
const [SCRAM, CHALLENGE, OWN_PROOF, PROVED, SETTING, LOGGED_IN, PARSED, TYPES, COLUMNS, ROW] = [
  0, 1, 2, 3, 4, 6, 7, 8, 9, 11
] as const
const none = Buffer.from([0, 0, 0])

test('a server that is well answers whatever is asked, however its bytes are cut', async () => {
  for (const isCut of [false, true]) {
    const games = WAYS.map(way => ({ way, ssl: false, mischief: [], isCut }) as const)
    expect(await play(games, 5_000)).toEqual(WAYS.map(() => 'done'))
  }
})

type Case = readonly [what: string, nth: number, what: Mischief, code: string]
const challenges = [
  'r=x',
  'r=x,s=AAAA',
  'r=x,s=AAAA,i=abc',
  'r=x,s=AAAA,i=0',
  'r=x,s=,i=1',
  's=AAAA,i=1',
  'm=x,r=x,s=AAAA,i=1'
]

test.each<Case>([
  ['speaks of nothing', SCRAM, instead(), 'transient'],
  ['wants a proof that is not known', SCRAM, instead(proof(7)), 'denied'],
  ['knows another kind of SCRAM alone', SCRAM, instead(proof(10, 'SCRAM-SHA-256-PLUS\0\0')), 'denied'],
  ['speaks another version', SCRAM, instead(message('v', int4(2), int4(0))), 'denied'],
  ['cannot serve, as servers said it of old', SCRAM, instead(Buffer.from('Ecould not fork\n\0')), 'transient'],
  ['challenges before it is asked', SCRAM, instead(proof(11, 'r=x,s=AAAA,i=1')), 'denied'],
  ...challenges.map((text): Case => [`challenges with ${text}`, CHALLENGE, instead(proof(11, text)), 'transient']),
  ['wants iterations without end', CHALLENGE, instead(proof(11, 'r=x,s=AAAA,i=2147483647')), 'denied'],
  ['challenges twice', CHALLENGE, behind(proof(11, 'r=x,s=AAAA,i=1')), 'transient'],
  ['does not know the password', OWN_PROOF, instead(proof(12, 'v=AAAA')), 'denied'],
  ['has no proof of its own', OWN_PROOF, instead(proof(0)), 'transient'],
  ['is ready before anybody has proved who he is', SCRAM, instead(READY), 'transient'],
  ['begins a copy in the login', SCRAM, instead(message('G', none)), 'transient'],
  ['begins a copy in both directions in the login', PROVED, behind(message('W', none)), 'transient'],
  ['has a setting of a GiB', SETTING, { kind: 'length', length: 2 ** 30 }, 'transient'],
  ['has a message of a negative length', SETTING, { kind: 'length', length: 3 }, 'transient'],
  ['has settings without end', SETTING, endless([message('S', 'name\0value\0')]), 'transient'],
  ['has notices without end', SETTING, endless([message('N', Buffer.alloc(20_000, 'M'))]), 'transient'],
  ['suspends a portal', LOGGED_IN, behind(message('s')), 'transient'],
  ['closes what nobody has opened', PARSED, behind(message('3')), 'transient'],
  ['begins a copy that nobody asked for', COLUMNS, behind(message('G', none)), 'transient'],
  ['begins a copy that goes out', COLUMNS, behind(message('H', none)), 'transient'],
  ['names columns without an end', COLUMNS, instead(message('T', Buffer.from([0, 1]), 'endless')), 'transient'],
  ['has more types than it says', TYPES, instead(message('t', Buffer.from([0, 9]))), 'transient'],
  ['has a row of other lengths than it says', ROW, { kind: 'change', at: 10, to: 200 }, 'transient'],
  ['has numbers that are none', ROW, instead(row('a', 'b', 'c', 'd')), 'transient'],
  ['has fewer values than columns', ROW, instead(row('1')), 'transient'],
  ['answers what nobody asked', LOGGED_IN, behind(row('1')), 'transient']
])('a server that %s: the call ends, and so does the session', async (_, nth, what, code) => {
  const games = [false, true].map(isCut => game(nth, what, { isCut: isCut && what.kind !== 'length' }))
  expect(await play(games, WAIT_MS)).toEqual([code, code])
})

test.each<[what: string, said: string, code: string]>([
  ['nothing that is known', 'X', 'denied'],
  ['an error, as servers said it of old', 'Ecould not fork\n\0', 'transient'],
  ['yes and more', 'Smore', 'denied'],
  ['yes, and then no handshake', 'S', 'transient'],
  ['no and more', 'Nmore', 'denied']
])('a server that answers a request for TLS with %s', async (_, said, code) => {
  expect(await play([game(0, instead(Buffer.from(said)), { ssl: 'prefer' })], WAIT_MS)).toEqual([code])
})

test('a commit that is answered with what is no answer may have happened', async () => {
  // Behind the settings: where the server comes from (4), BEGIN (5), a statement (4), and what is said of COMMIT.
  const said = 14 + 4 + 5 + 4
  for (const way of ['transaction', 'hold'] as const) {
    const nth = way === 'hold' ? said - 2 : said
    expect(await play([game(nth, instead(message('C', 'COMMIZ\0'), READY), { way })], WAIT_MS)).toEqual([
      'outcome-unknown'
    ])
  }
})

test('settings that differ, notices and rows without end take no memory without end', async () => {
  function* settings() {
    const value = Buffer.alloc(20_000, 'v')
    for (let n = 0; ; n++) yield message('S', `name${n}\0`, value, '\0')
  }
  const empty = message('D', Buffer.from([0xff, 0xff]), Buffer.alloc(4 * 0xffff))
  const games = [game(SETTING, endless(settings())), game(ROW, endless([empty]))]
  expect(await play(games, 1_500)).toEqual(['transient', 'exhausted'])
  expect(player?.maxRssMiB).toBeLessThan(RSS_MIB_MAX)
})

test('nothing of all that keeps a process alive, and it has said nothing', async () => {
  expect(await player?.end()).toEqual({ code: 0, said: '' })
})

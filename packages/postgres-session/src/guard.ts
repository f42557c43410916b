/**
 * What the driver may hear. It believes a server: a challenge that is none ends the process (it answers in handlers that nobody awaits),
 * names of columns that do not end keep it busy for ever, and the stream of a copy that nobody asked for is destroyed without a
 * listener. So each message is looked at first, whole. The first one that no server says in this place ends the connection.
 *
 *   proof  R, in the order of the proof of who one is
 *   start  K, then Z, which ends the login
 *   after  Z C I 1 2 n T t D, and G once for a copy
 *   all    E, and S N A, which go no further: the driver would keep every setting, and has no use for any of them
 */
import { EngineFault } from '@alkblobs/core/engine'
import { unasked, unreadable } from './failure.js'
import { ANSWER_LENGTH_MAX, AnswerSize, OTHER_LENGTH_MAX } from './limits.js'
import { Pieces } from './pieces.js'
import { checkProof, PROVED } from './proof.js'
import { isDescription, isErrorResponse, isTypes, valuesIn } from './well-formed.js'

/** What can be checked of a message before it has come, and after. */
interface Rule {
  readonly lengthMax: number
  readonly isRight: (body: Buffer) => boolean
}

const HEAD_LENGTH = 5
/** What has no long text in it; libpq has the same limit. */
const SHORT_LENGTH = 30_000
const code = (letter: string) => letter.charCodeAt(0)
const [ROW, COLUMNS, PROOF, READY, COPY] = [code('D'), code('T'), code('R'), code('Z'), code('G')]
const BEGINS_ROWS: ReadonlySet<number> = new Set(['T', '2'].map(code))
const ENDS_ROWS: ReadonlySet<number> = new Set(['C', 'I', 'E', 'Z'].map(code))
const ASIDE: ReadonlySet<number> = new Set(['S', 'N', 'A'].map(code))

const anything = () => true
const empty: Rule = { lengthMax: 0, isRight: anything }
const ready: Rule = { lengthMax: 1, isRight: body => /^[ITE]$/.test(body.toString('latin1')) }
const aside = (lengthMax: number): Record<string, Rule> => {
  const rule = { lengthMax, isRight: anything }
  return { S: rule, N: rule, A: rule, E: { lengthMax, isRight: isErrorResponse } }
}
const rules = (by: Record<string, Rule>) => new Map(Object.entries(by).map(([letter, rule]) => [code(letter), rule]))

const PROVING = rules({
  ...aside(SHORT_LENGTH),
  // As in libpq.
  R: { lengthMax: 2_000, isRight: body => body.length >= 4 }
})
const STARTING = rules({
  // What a database does at each login (a trigger may) says as much as any statement.
  ...aside(OTHER_LENGTH_MAX),
  K: { lengthMax: 8, isRight: body => body.length === 8 },
  Z: ready
})
const AFTER = rules({
  ...aside(OTHER_LENGTH_MAX),
  Z: ready,
  C: { lengthMax: SHORT_LENGTH, isRight: body => body.at(-1) === 0 },
  I: empty,
  1: empty,
  2: empty,
  n: empty,
  T: { lengthMax: OTHER_LENGTH_MAX, isRight: isDescription },
  t: { lengthMax: 2 + 4 * 0xffff, isRight: isTypes },
  D: { lengthMax: ANSWER_LENGTH_MAX, isRight: anything },
  G: { lengthMax: SHORT_LENGTH, isRight: anything }
})

export class Guard {
  readonly #pass: (message: Buffer) => void
  readonly #size = new AnswerSize()
  #rules = PROVING
  /** The kind of the last R. */
  #proof: number | undefined
  /** Whether a COPY to the server is under way, and the server has not said so yet. */
  expectsCopy = false
  /** Whether a row may come: a statement has begun to answer, and has not ended. */
  #expectsRows = false
  /** What has come of a message, and how much is needed: its head, and then all of it. */
  readonly #part = new Pieces()
  #needed = HEAD_LENGTH

  /** `pass` gets whole messages, as many as came together; they are its own. */
  constructor(pass: (messages: Buffer) => void) {
    this.#pass = pass
  }

  /** Whether all that came was whole messages. */
  get isBetween(): boolean {
    return this.#part.length === 0
  }

  /** Takes bytes, of which it keeps none; `isRest`: only those of the message that is not whole yet. Answers how many. @throws EngineFault */
  take(bytes: Buffer, isRest: boolean): number {
    let at = 0
    let passed = 0
    const pass = () => {
      // One copy for all: one for each costs a small row a fifth of its time.
      if (passed < at) this.#pass(Buffer.from(bytes.subarray(passed, at)))
    }
    try {
      while (at < bytes.length && !(isRest && this.isBetween)) {
        const length = this.isBetween ? this.#lengthOf(bytes, at) : undefined
        if (length === undefined || at + length > bytes.length) {
          pass()
          at += this.#keep(bytes, at)
          passed = at
        } else if (this.#mayPass(bytes, at, length)) at += length
        else {
          pass()
          at += length
          passed = at
        }
      }
    } finally {
      pass()
    }
    return at
  }

  /** Keeps what there is of the message that is not whole, up to its end, and passes it then. */
  #keep(bytes: Buffer, at: number): number {
    const taken = this.#part.add(bytes, at, this.#needed)
    if (this.#part.length < this.#needed) return taken
    this.#needed = this.#lengthOf(this.#part.bytes, 0) ?? HEAD_LENGTH
    if (this.#part.length < this.#needed) return taken
    this.#needed = HEAD_LENGTH
    const part = this.#part.take()
    if (this.#mayPass(part, 0, part.length)) this.#pass(part)
    return taken
  }

  /** Of the whole message, if its head is there. */
  #lengthOf(bytes: Buffer, at: number): number | undefined {
    if (bytes.length - at < HEAD_LENGTH) return undefined
    const rule = this.#ruleOf(bytes[at] as number)
    const length = bytes.readUInt32BE(at + 1) - 4
    if (length < 0 || length > rule.lengthMax) throw unreadable()
    return HEAD_LENGTH + length
  }

  #ruleOf(letter: number): Rule {
    const rule = this.#rules.get(letter)
    if (rule !== undefined) return rule
    if (letter === code('v')) throw new EngineFault('denied', 'the server does not speak version 3.0 of its protocol')
    throw unasked()
  }

  /** Whether the driver hears of a message. @throws for one that nobody may hear of. */
  #mayPass(bytes: Buffer, at: number, length: number): boolean {
    const letter = bytes[at] as number
    if (letter === ROW) {
      this.#row(bytes, at, length)
      return true
    }
    const body = bytes.subarray(at + HEAD_LENGTH, at + length)
    if (!this.#ruleOf(letter).isRight(body)) throw unreadable()
    if (ASIDE.has(letter)) return false
    if (letter === PROOF) this.#prove(body)
    if (letter === READY) this.#ready()
    // The driver keeps the columns of each answer.
    else this.#size.add(letter === COLUMNS ? body.readUInt16BE(0) : 0, length)
    if (BEGINS_ROWS.has(letter)) this.#expectsRows = true
    else if (ENDS_ROWS.has(letter)) this.#expectsRows = false
    if (letter === COPY) {
      if (!this.expectsCopy) throw unasked()
      this.expectsCopy = false
    }
    return true
  }

  #row(bytes: Buffer, at: number, length: number): void {
    if (!this.#expectsRows) throw unasked()
    const values = valuesIn(bytes, at + HEAD_LENGTH, at + length)
    if (values === undefined) throw unreadable()
    this.#size.add(values, length)
  }

  #prove(body: Buffer): void {
    this.#proof = checkProof(this.#proof, body)
    if (this.#proof === PROVED) this.#rules = STARTING
  }

  #ready(): void {
    this.#size.begin()
    this.#rules = AFTER
  }
}

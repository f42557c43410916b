/**
 * Statements with binary parameters and binary rows, over the socket of a connection while its driver has nothing to say.
 *
 * An exchange is a pipeline of statements that ends in one Sync, in one message each way: after the first that fails the server passes
 * over the rest. (So what follows a BEGIN that is refused or cancelled is not done outside of a transaction.) Exchanges may be asked for
 * before the one before is answered; they run in order. A statement is prepared once for each session, and its name is believed in once
 * the server has said so.
 */
import { Answers, type Row } from './answers.js'
import type { Channel } from './channel.js'
import { fieldsOf, ServerError, unasked, unreadable } from './failure.js'
import { AnswerSize } from './limits.js'
import { type Binary, Pipeline } from './messages.js'

export interface Statement {
  /** One of a fixed number: it is kept by the session, unless it is said `once`. */
  readonly text: string
  readonly once?: boolean
  readonly params?: readonly Binary[]
  /** Makes room for its rows, from their first value on; without it each long value has memory of its own. Called for each time it runs. */
  readonly room?: () => Room
}

/** Memory for the next value, which is of this column and length. */
export type Room = (column: number, length: number) => Buffer

/** What a statement answered: its rows, and what the server calls what it did. */
export interface Answer {
  readonly rows: Row[]
  command: string
}

/** What came of an exchange: an answer for each statement, up to the one that failed. */
export interface Outcome {
  readonly answers: readonly Answer[]
  readonly error: ServerError | undefined
}

interface Asked {
  readonly statements: readonly Statement[]
  readonly rooms: readonly (Room | undefined)[]
  /** Names that are prepared with this exchange, by the place of the statement. */
  readonly names: ReadonlyMap<number, string>
  readonly answers: Answer[]
  rows: Row[]
  error: ServerError | undefined
  readonly resolve: (outcome: Outcome) => void
}

const letter = (text: string) => text.charCodeAt(0)
const PARSED = letter('1')
const BOUND = letter('2')
const COMPLETE = letter('C')
const EMPTY_QUERY = letter('I')
const ERROR = letter('E')
const READY = letter('Z')
/** What the server says when it likes: settings, notices, notifications. */
const ASIDE: ReadonlySet<number> = new Set(['S', 'N', 'A'].map(letter))

export class Lane {
  readonly #channel: Channel
  readonly #kill: (reason: unknown) => void
  readonly #prepared = new Map<string, string>()
  readonly #asked: Asked[] = []
  readonly #answers: Answers
  readonly #size = new AnswerSize()
  #names = 0

  /** `kill`: what is said cannot be understood. */
  constructor(channel: Channel, kill: (reason: unknown) => void) {
    this.#channel = channel
    this.#kill = kill
    this.#answers = new Answers({
      room: (column, length) => this.#room(column, length),
      row: row => this.#row(row),
      message: (letter, body) => this.#message(letter, body)
    })
  }

  /** Never rejects; never resolves if the connection ends first. Long parameters are read until then. */
  ask(statements: readonly Statement[]): Promise<Outcome> {
    const pipeline = new Pipeline()
    const names = new Map<number, string>()
    for (const [place, { text, params = [], once = false }] of statements.entries()) {
      let name = once ? '' : this.#prepared.get(text)
      if (name === undefined) {
        name = `alkblobs_${++this.#names}`
        names.set(place, name)
      }
      if (once || names.has(place)) pipeline.parse(name, text)
      pipeline.bind(name, params)
      pipeline.execute()
    }
    return new Promise(resolve => {
      const rooms = statements.map(({ room }) => room?.())
      this.#asked.push({ statements, rooms, names, answers: [], rows: [], error: undefined, resolve })
      this.#channel.divert(bytes => this.#take(bytes))
      this.#channel.write(pipeline.ended())
    })
  }

  /** What was prepared may be stale or gone. */
  forget(): void {
    this.#prepared.clear()
  }

  #take(bytes: Buffer): void {
    try {
      const taken = this.#answers.take(bytes, () => this.#asked.length === 0)
      if (this.#asked.length > 0) return
      this.#channel.divert(undefined)
      if (taken < bytes.length) this.#channel.take(bytes.subarray(taken))
    } catch (error) {
      this.#kill(error)
    }
  }

  #room(column: number, length: number): Buffer {
    const asked = this.#asked[0]
    const room = asked?.rooms[asked.answers.length]
    return room === undefined ? Buffer.allocUnsafe(length) : room(column, length)
  }

  #row(row: Row): void {
    this.#size.add(
      row.length,
      row.reduce((sum, value) => sum + (value?.length ?? 0), 0)
    )
    this.#asked[0]?.rows.push(row)
  }

  #message(letter: number, body: Buffer): void {
    const asked = this.#asked[0]
    if (asked === undefined || ASIDE.has(letter) || letter === BOUND) return
    if (letter === COMPLETE || letter === READY) this.#size.begin()
    if (letter === PARSED) this.#parsed(asked)
    else if (letter === COMPLETE) complete(asked, body.toString('latin1', 0, body.length - 1))
    else if (letter === EMPTY_QUERY) complete(asked, '')
    else if (letter === ERROR) asked.error ??= errorOf(body)
    else if (letter === READY) {
      if (asked.error === undefined && asked.answers.length < asked.statements.length) throw unasked()
      this.#asked.shift()
      asked.resolve({ answers: asked.answers, error: asked.error })
    } else throw unasked()
  }

  #parsed({ answers, names, statements }: Asked): void {
    const [text, name] = [statements[answers.length]?.text, names.get(answers.length)]
    if (text !== undefined && name !== undefined) this.#prepared.set(text, name)
  }
}

function errorOf(body: Buffer): ServerError {
  const fields = fieldsOf(body)
  if (fields === undefined) throw unreadable()
  return new ServerError(fields)
}

/** Words of a tag are letters; how many rows there were stands behind them. */
const COMMAND = /^[A-Z ]*/

function complete(asked: Asked, tag: string): void {
  if (asked.answers.length === asked.statements.length) throw unasked()
  asked.answers.push({ rows: asked.rows, command: (COMMAND.exec(tag)?.[0] ?? '').trimEnd() })
  asked.rows = []
}

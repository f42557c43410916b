/** A server that logs in, as PostgreSQL does, whoever knows the password, answers what sessions ask, and says it as badly as it is told to. */
import { createHmac, pbkdf2Sync } from 'node:crypto'
import type { Socket } from 'node:net'

export const PASSWORD = 'secret'
const SALT = Buffer.from('salt of the test')
const NONCE = 'of-the-server'
const SSL_REQUEST = 80877103
/** Its process, as it says when a session starts and when it is asked. */
const PID = 123

/** A message: its letter, the length of the rest, and that. */
export function message(letter: string, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const body = Buffer.concat(parts.map(part => Buffer.from(part)))
  const head = Buffer.alloc(5, letter, 'latin1')
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

export const int2 = (value: number) => Buffer.from([value >> 8, value & 255])
export const int4 = (value: number) => Buffer.from([value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255])
const zeroEnded = (text: string) => Buffer.from(`${text}\0`)

export const READY = message('Z', 'I')
export const proof = (kind: number, ...rest: readonly (Uint8Array | string)[]) => message('R', int4(kind), ...rest)
export const complete = (tag: string) => message('C', zeroEnded(tag))
export const description = (...types: readonly number[]) =>
  message(
    'T',
    int2(types.length),
    ...types.flatMap(type => [zeroEnded('name'), int4(0), int2(0), int4(type), int2(-1), int4(-1), int2(0)])
  )
export const row = (...values: readonly string[]) =>
  message('D', int2(values.length), ...values.flatMap(value => [int4(value.length), value]))
export const refusal = (code: string) => message('E', 'SERROR\0VERROR\0', `C${code}\0`, 'Mno\0', '\0')

/** What a statement answers: types of its columns, its rows as text, its tag. */
interface Answer {
  readonly types: readonly number[]
  readonly values: readonly string[]
  readonly tag: string
}

const [TEXT, INT4, INT8] = [25, 23, 20]

function answerTo(text: string): Answer {
  if (/pg_backend_pid/.test(text) && /set_config/.test(text)) {
    return { types: [INT4, INT4, TEXT, INT8], values: [`${PID}`, '170000', '1.5', '9'], tag: 'SELECT 1' }
  }
  if (/pg_control_system/.test(text)) return { types: [TEXT, TEXT], values: ['1:1', '2'], tag: 'SELECT 1' }
  if (/pg_current_xact_id/.test(text)) return { types: [TEXT, TEXT], values: ['7', '0/1'], tag: 'SELECT 1' }
  if (/^(BEGIN|COMMIT|ROLLBACK|SET)/.test(text)) return { types: [], values: [], tag: /^\w+/.exec(text)?.[0] as string }
  return { types: [INT8], values: ['1'], tag: 'SELECT 1' }
}

/** Speaks with one client. `say` sends each message, or what is to be sent instead. */
export function serve(socket: Socket, say: (message: Buffer, socket: Socket) => void): void {
  const client = new Client(message => say(message, socket))
  let rest: Buffer = Buffer.alloc(0)
  socket.on('data', bytes => {
    rest = Buffer.concat([rest, bytes])
    for (let length = client.lengthOf(rest); length <= rest.length; length = client.lengthOf(rest)) {
      client.hear(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  })
}

class Client {
  readonly #say: (message: Buffer) => void
  readonly #texts = new Map<string, string>()
  #isStarted = false
  #isCopying = false
  #first = ''
  #bound: Answer = answerTo('')

  constructor(say: (message: Buffer) => void) {
    this.#say = say
  }

  /** Of the first message, or infinite as long as it is not known. */
  lengthOf(bytes: Buffer): number {
    const head = this.#isStarted ? 1 : 0
    return bytes.length < head + 4 ? Number.POSITIVE_INFINITY : head + bytes.readUInt32BE(head)
  }

  hear(bytes: Buffer): void {
    if (this.#isStarted) this.#answer(bytes)
    else if (bytes.readUInt32BE(4) === SSL_REQUEST) this.#say(Buffer.from('N'))
    else {
      this.#isStarted = true
      this.#say(proof(10, 'SCRAM-SHA-256\0\0'))
    }
  }

  #answer(bytes: Buffer): void {
    const letter = String.fromCharCode(bytes[0] as number)
    const body = bytes.subarray(5)
    if (letter === 'p') this.#prove(body.toString())
    else if (letter === 'Q') this.#query(body.toString('utf8', 0, body.length - 1))
    else if (letter === 'P') this.#parse(body.toString('latin1').split('\0'))
    else if (letter === 'D') this.#describe(body.toString('latin1', 1, body.length - 1))
    else if (letter === 'B') this.#bind(body.toString('latin1').split('\0')[1] ?? '')
    else if (letter === 'E') this.#execute(this.#bound)
    else if (letter === 'S') this.#say(READY)
    // A server passes over what belongs to a copy that is over; the driver calls off each that has ended well.
    else if (this.#isCopying && letter === 'c') this.#end(complete('COPY 1'))
    else if (this.#isCopying && letter === 'f') this.#end(refusal('57014'))
  }

  #prove(said: string): void {
    const nonce = /n,,(n=\*,r=.*)$/s.exec(said)?.[1]
    const challenge = `r=${(this.#first || (nonce ?? '')).slice(6)}${NONCE},s=${SALT.toString('base64')},i=1`
    if (nonce !== undefined) {
      this.#first = nonce
      this.#say(proof(11, challenge))
    } else this.#let(said, challenge)
  }

  #let(said: string, challenge: string): void {
    const key = createHmac('sha256', pbkdf2Sync(PASSWORD, SALT, 1, 32, 'sha256'))
      .update('Server Key')
      .digest()
    const all = `${this.#first},${challenge},${said.slice(0, said.indexOf(',p='))}`
    this.#say(proof(12, `v=${createHmac('sha256', key).update(all).digest('base64')}`))
    this.#say(proof(0))
    this.#say(message('S', 'server_version\x0017.0\0'))
    this.#say(message('K', int4(PID), int4(5)))
    this.#say(READY)
  }

  #query(text: string): void {
    this.#isCopying = /^COPY/.test(text)
    if (this.#isCopying) this.#say(message('G', Buffer.from([0, 0, 0])))
    else this.#answerAll(text)
  }

  #answerAll(text: string): void {
    const answers = text.split(';').map(each => answerTo(each.trim()))
    for (const answer of answers) {
      if (answer.types.length > 0) this.#say(description(...answer.types))
      this.#execute(answer)
    }
    this.#say(READY)
  }

  #parse([name = '', text = '']: string[]): void {
    this.#texts.set(name, text)
    this.#say(message('1'))
  }

  #describe(name: string): void {
    const text = this.#texts.get(name) ?? ''
    const params = new Set(text.match(/\$\d+/g)).size
    const { types } = answerTo(text)
    this.#say(message('t', int2(params), ...Array.from({ length: params }, () => int4(TEXT))))
    this.#say(types.length > 0 ? description(...types) : message('n'))
  }

  #bind(name: string): void {
    this.#bound = answerTo(this.#texts.get(name)?.trim() ?? '')
    this.#say(message('2'))
  }

  #execute({ values, tag }: Answer): void {
    if (values.length > 0) this.#say(row(...values))
    this.#say(complete(tag))
  }

  #end(last: Buffer): void {
    this.#isCopying = false
    this.#say(last)
    this.#say(READY)
  }
}

// Child processes of a test: each runs one script of `workers/` against the built packages, talks in lines of JSON, and is
// gone when its test is over, whatever happened.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'

/** Whether the long forms of the tests are to run; the bounds are the same. */
export const isLong = process.env.ALKBLOBS_LONG === '1'

const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A folder of this test alone. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'alkblobs-processes-'))
  ends.push(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** A number that decides the random steps of a test: printed, and given back by `ALKBLOBS_SEED` to repeat them. */
export function newSeed(test: string): number {
  const seed = Number(process.env.ALKBLOBS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  report(`${test}: ALKBLOBS_SEED=${seed}`)
  return seed
}

/** A number in [0, 1) for one decision of a seed. */
export function fractionOf(seed: number, decision: string): number {
  return createHash('sha256').update(`${seed} ${decision}`).digest().readUInt32LE() / 2 ** 32
}

/** One line among the results of the run. */
export function report(line: string): void {
  console.log(line)
}

interface ChildOptions {
  /** What the worker finds as `given`. */
  readonly given: object
  /** Longest the process may live, in milliseconds; then it is killed and whoever waits for it is told. */
  readonly limitMs: number
  /** Options for node. */
  readonly node?: readonly string[]
}

export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A process that runs a worker. What it says is kept until it is asked for. */
export class Child {
  /** Resolves when it has ended and everything it said has been heard. */
  readonly end: Promise<End>
  readonly #process: ChildProcessWithoutNullStreams
  readonly #script: string
  readonly #said: unknown[] = []
  readonly #waiting: { resolve: (message: never) => void; reject: (error: Error) => void }[] = []
  #errors = ''
  #isOver = false

  constructor(script: string, { given, limitMs, node = [] }: ChildOptions) {
    assertBuilt()
    this.#script = script
    const path = fileURLToPath(new URL(`./workers/${script}`, import.meta.url))
    this.#process = spawn(process.execPath, [...node, path, JSON.stringify(given)], { stdio: 'pipe' })
    const timer = setTimeout(() => {
      this.#errors += `\nit was killed after ${limitMs} ms`
      this.#process.kill('SIGKILL')
    }, limitMs)
    // A process that is gone cannot be told anything; whoever waits for its answer hears of its end.
    this.#process.stdin.on('error', () => {})
    this.#process.stderr.on('data', data => {
      this.#errors += data
    })
    const lines = createInterface({ input: this.#process.stdout })
    lines.on('line', line => this.#hear(line))
    const linesEnd = once(lines, 'close')
    this.end = once(this.#process, 'close').then(async ([code, signal]) => {
      clearTimeout(timer)
      await linesEnd
      this.#isOver = true
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure(code, signal))
      return { code, signal }
    })
    ends.push(() => this.kill())
  }

  /** The next thing it says. @throws if it ends before it says anything more. */
  async next<T>(): Promise<T> {
    if (this.#said.length > 0) return this.#said.shift() as T
    if (this.#isOver) {
      const { code, signal } = await this.end
      throw this.#failure(code, signal)
    }
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  /** Everything it has said that nobody asked for. */
  rest<T>(): T[] {
    return this.#said.splice(0) as T[]
  }

  tell(message: unknown = {}): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`)
  }

  /** What it wrote to its error output. */
  get complaints(): string {
    return this.#errors
  }

  /** Stops it wherever it is, timers and all, as a suspended machine would. Resolves when it stands. */
  async pause(): Promise<void> {
    this.#process.kill('SIGSTOP')
    const stat = `/proc/${this.#process.pid}/stat`
    while (existsSync(stat) && readFileSync(stat, 'utf8').split(') ')[1]?.[0] !== 'T') await sleep(5)
  }

  resume(): void {
    this.#process.kill('SIGCONT')
  }

  /** Ends it at once, wherever it is. */
  async kill(): Promise<End> {
    this.#process.kill('SIGKILL')
    return this.end
  }

  /** Lets it end by itself, which it must do well. */
  async finish(): Promise<void> {
    this.#process.stdin.end()
    const { code, signal } = await this.end
    if (code !== 0) throw this.#failure(code, signal)
  }

  #hear(line: string): void {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      // Half a line is what a killed process leaves: it has said nothing.
      return
    }
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#said.push(message)
    else waiting.resolve(message as never)
  }

  #failure(code: number | null, signal: NodeJS.Signals | null): Error {
    return new Error(`${this.#script} ended (code ${code}, signal ${signal}): ${this.#errors}`)
  }
}

interface Answer {
  readonly id?: number
  readonly answer?: unknown
  readonly error?: { readonly message: string; readonly code?: string; readonly reason?: string }
}

/** A process that does what it is asked. */
export class Agent {
  readonly #child: Child
  readonly #asked = new Map<number, { resolve: (answer: never) => void; reject: (error: Error) => void }>()
  readonly #barriers: (() => void)[] = []
  #count = 0

  constructor(folder: string, limitMs: number) {
    this.#child = new Child('agent.mjs', { given: { folder }, limitMs })
    void this.#listen()
  }

  /** @throws an error with the `code` and `reason` of the one in the agent. */
  ask<T>(ask: string, rest: object = {}): Promise<T> {
    const id = ++this.#count
    const answer = new Promise<T>((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#child.tell({ id, ask, ...rest })
    })
    // A test that failed meanwhile does not wait for it any more.
    answer.catch(() => {})
    return answer
  }

  /** Resolves when a sweep stands at its barrier: its source has made up its answer and not given it. */
  barrier(): Promise<void> {
    return new Promise(resolve => this.#barriers.push(resolve))
  }

  async finish(): Promise<void> {
    await this.ask('close')
    await this.#child.finish()
  }

  async #listen(): Promise<void> {
    try {
      for (;;) this.#settle(await this.#child.next<Answer>())
    } catch (error) {
      for (const { reject } of this.#asked.values()) reject(error as Error)
    }
  }

  #settle({ id, answer, error }: Answer): void {
    if (id === undefined) {
      this.#barriers.shift()?.()
      return
    }
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    if (error === undefined) asked?.resolve(answer as never)
    else asked?.reject(Object.assign(new Error(error.message), { code: error.code, reason: error.reason }))
  }
}

function assertBuilt(): void {
  for (const name of ['core', 'engine-local', 'engine-sqlite', 'engine-postgres', 'engine-pglo']) {
    const file = fileURLToPath(new URL(`../../../${name}/dist/index.js`, import.meta.url))
    if (!existsSync(file))
      throw new Error(`packages/${name} is not built, and these tests run the built packages: npm run build`)
  }
}

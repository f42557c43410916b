/** A process that is to be killed, stopped or starved, and is gone when it is let go of. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { lookUntil } from '../looking.js'
import { MARK, type Said } from './markers.js'

export interface VictimOptions {
  /** A script for Node.js, and its arguments. */
  readonly script: string
  readonly args?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Options of Node.js itself. */
  readonly node?: readonly string[]
  /** What the kernel allows it: most descriptors, and the longest file in blocks of 512 bytes. */
  readonly limits?: { readonly descriptors?: number; readonly fileBlocks?: number }
  /** Longest it may live, in milliseconds; then it is killed, and whoever waits for it is told. Default 60 s. */
  readonly limitMs?: number
}

export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class Victim {
  /** Resolves when it has ended and everything it said was heard. */
  readonly end: Promise<End>
  readonly #process: ChildProcessWithoutNullStreams
  readonly #script: string
  readonly #said: Said[] = []
  readonly #waiting: { readonly resolve: (said: Said) => void; readonly reject: (error: Error) => void }[] = []
  #errors = ''
  #isOver = false

  constructor({ script, args = [], environment = {}, node = [], limits = {}, limitMs = 60_000 }: VictimOptions) {
    this.#script = script
    const [command, given] = commandOf([process.execPath, ...node, script, ...args], limits)
    this.#process = spawn(command, given, { stdio: 'pipe', env: { ...process.env, ...environment } })
    const timer = setTimeout(() => {
      this.#errors += `\nit was killed after ${limitMs} ms`
      this.#process.kill('SIGKILL')
    }, limitMs)
    // What is gone cannot be told anything; whoever waits for its answer hears of its end.
    this.#process.stdin.on('error', () => undefined)
    this.#process.stderr.on('data', data => {
      this.#errors += data
    })
    const lines = createInterface({ input: this.#process.stdout })
    lines.on('line', line => this.#hear(line))
    const heard = new Promise(resolve => lines.once('close', resolve))
    this.end = new Promise(resolve => {
      this.#process.once('close', (code, signal) => {
        clearTimeout(timer)
        void heard.then(() => {
          this.#isOver = true
          for (const { reject } of this.#waiting.splice(0)) reject(this.#failure({ code, signal }))
          resolve({ code, signal })
        })
      })
    })
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  /** What it wrote to stderr so far. */
  get errors(): string {
    return this.#errors
  }

  /** The next thing it says. @throws Error with its stderr if it ends before it says anything more. */
  async next(): Promise<Said> {
    const said = this.#said.shift()
    if (said !== undefined) return said
    if (this.#isOver) throw this.#failure(await this.end)
    return await new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  /** Everything that it has said and nobody asked for. */
  rest(): Said[] {
    return this.#said.splice(0)
  }

  /** Hears it until it waits at a phase. Answers that, and what it said before. */
  async reached(): Promise<{ readonly at: string; readonly before: readonly Said[] }> {
    const before: Said[] = []
    for (;;) {
      const said = await this.next()
      if (said.at !== undefined) return { at: said.at, before }
      before.push(said)
    }
  }

  /** Lets it go on, with a word if there is one. */
  go(word = 'go'): void {
    this.#process.stdin.write(`${word}\n`)
  }

  /** Ends it at once, wherever it is (SIGKILL). @throws Error if it had ended by itself: then nothing was killed. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    const end = await this.end
    if (end.signal !== 'SIGKILL') throw this.#failure(end)
  }

  /** Stops it where it is (SIGSTOP); it is not told, and keeps everything it holds. @throws Error if it did not stop. */
  async stop(): Promise<void> {
    this.#process.kill('SIGSTOP')
    const state = await lookUntil(async () => (stateOf(this.pid) === 'T' ? 'T' : undefined), 5_000)
    if (state === undefined && stateOf(this.pid) !== undefined) throw new Error(`${this.#script} was not stopped`)
  }

  /** Lets a stopped process go on (SIGCONT). */
  continue(): void {
    this.#process.kill('SIGCONT')
  }

  /** Lets it end by itself, which it must do well. @throws Error with its stderr otherwise. */
  async finish(): Promise<void> {
    this.#process.stdin.end()
    const end = await this.end
    if (end.code !== 0) throw this.#failure(end)
  }

  /** Ends it if it has not ended. For the end of a test, whatever happened. */
  async release(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.end
  }

  #hear(line: string): void {
    if (!line.startsWith(MARK)) return
    let said: Said
    try {
      said = JSON.parse(line.slice(MARK.length)) as Said
    } catch {
      // Half a line is what a killed process leaves: it has said nothing.
      return
    }
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#said.push(said)
    else waiting.resolve(said)
  }

  #failure({ code, signal }: End): Error {
    return new Error(`${this.#script} ended (code ${code}, signal ${signal}): ${this.#errors}`)
  }
}

/** The shell sets limits of the process that takes its place. */
function commandOf(
  command: readonly string[],
  { descriptors, fileBlocks }: NonNullable<VictimOptions['limits']>
): [string, string[]] {
  const orders = [
    ...(descriptors === undefined ? [] : [`ulimit -n ${Number(descriptors)}`]),
    ...(fileBlocks === undefined ? [] : [`ulimit -f ${Number(fileBlocks)}`])
  ]
  if (orders.length === 0) return [command[0] as string, command.slice(1)]
  return ['sh', ['-c', `${orders.join(' && ')} && exec "$@"`, 'sh', ...command]]
}

/** One letter of the kernel's for what a process does; `undefined` where the system does not tell. */
function stateOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2)[0]
  } catch {
    return undefined
  }
}

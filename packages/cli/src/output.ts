/**
 * Where words go: results to stdout, as lines or (`--json`) as one JSON object a line, everything else to stderr. Every write waits
 * until it is taken, so a slow reader slows the command instead of filling memory. A reader that has gone away (`| head -1`)
 * is no failure: what follows is dropped, and `readerGone` tells commands that only print that they may stop.
 */
import type { Writable } from 'node:stream'
import pc from 'picocolors'
import { CommandError, EXIT } from './exit-codes.js'
import { codeOf, describe, trace } from './failure.js'
import type { Surroundings } from './surroundings.js'

type Colors = ReturnType<typeof pc.createColors>

/** The reason of `readerGone`. */
export class ReaderGone extends Error {
  constructor() {
    super('nobody reads the output any more')
    this.name = 'ReaderGone'
  }
}

const GONE = new Set(['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET', 'ERR_STREAM_WRITE_AFTER_END'])

export class Output {
  /** Colours for stdout and for stderr: none unless that stream is a terminal and NO_COLOR is not set. */
  readonly colors: Colors
  readonly noteColors: Colors
  /** Whether results are written as JSON. */
  json = false
  /** Called before a line is written to a terminal, so that a progress bar can get out of the way. */
  beforeLine: () => void = () => {}
  readonly #surroundings: Surroundings
  readonly #gone = new AbortController()
  #failure: unknown

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings
    this.colors = colorsFor(surroundings, surroundings.stdout.isTTY === true)
    this.noteColors = colorsFor(surroundings, surroundings.stderr.isTTY === true)
    surroundings.stdout.on('error', error => this.#failed(error))
    // Nobody can be told that stderr has gone, and a command must not fail for it.
    surroundings.stderr.on('error', () => {})
  }

  /** Fires when the reader of stdout has gone away. */
  get readerGone(): AbortSignal {
    return this.#gone.signal
  }

  /** Writes one result: `value` as JSON, or the lines of `text`. */
  async result(value: object, text: string): Promise<void> {
    this.beforeLine()
    await this.#write(`${this.json ? JSON.stringify(value) : text}\n`)
  }

  /** Writes content to stdout as it is. */
  async content(chunk: Uint8Array): Promise<void> {
    await this.#write(chunk)
  }

  /** Writes a line for people to stderr. */
  note(text: string): void {
    this.beforeLine()
    this.#surroundings.stderr.write(`${text}\n`)
  }

  /** Writes a failure to stderr; `about` names what it happened to. */
  problem(error: unknown, about?: string): void {
    const subject = about === undefined ? '' : `${about}: `
    this.note(`${this.noteColors.red('alkblobs:')} ${subject}${describe(error)}`)
    if (isDebugging(this.#surroundings)) this.note(trace(error))
  }

  async #write(text: string | Uint8Array): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#gone.signal.aborted) return
    await taken(this.#surroundings.stdout, text).catch(error => this.#failed(error))
    if (this.#failure !== undefined) throw this.#failure
  }

  #failed(error: unknown): void {
    if (GONE.has(codeOf(error) ?? '')) this.#gone.abort(new ReaderGone())
    else this.#failure ??= new CommandError(EXIT.failed, `the output could not be written: ${describe(error)}`, error)
  }
}

function taken(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, error => (error ? reject(error) : resolve()))
  })
}

function colorsFor({ env }: Surroundings, isTerminal: boolean): Colors {
  const isWanted = (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return pc.createColors(isTerminal && isWanted)
}

const isDebugging = ({ env }: Surroundings): boolean => (env.ALKBLOBS_DEBUG ?? '') !== '' && env.ALKBLOBS_DEBUG !== '0'

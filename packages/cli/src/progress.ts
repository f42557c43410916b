/**
 * Progress of long work on stderr: a bar with bytes, rate and time remaining on a terminal, a plain line every few seconds
 * in a log. Short work shows nothing in a log.
 */
import { MultiBar } from 'cli-progress'
import { bytes, count, duration } from './format.js'
import type { Output } from './output.js'
import type { Surroundings } from './surroundings.js'

const LINE_EVERY_MS = 5_000
/** Work that is over before this shows no bar: it would only flash. */
const BAR_AFTER_MS = 300
const BAR_WIDTH = 24

export interface Progress {
  /** Adds to what is done, in the unit of the work. */
  add(amount: number): void
  /** Adds to the items that are done, where the work itself is counted in bytes. */
  finish(items?: number): void
  /** Adds to what there is to do; unknown until it is called. */
  expect(amount: number): void
  /** Removes the bar; idempotent. */
  stop(): void
}

export interface ProgressOptions {
  /** What is going on, as a present participle: `putting`. */
  readonly label: string
  /** What the work is counted in. */
  readonly unit: 'bytes' | 'items'
  /** What an item is called, one and many. */
  readonly item: readonly [one: string, many: string]
}

/** What is done, and the words for it: shared by the bar and the line. */
class Tally {
  done = 0
  items = 0
  total: number | undefined
  readonly #startedMs = performance.now()
  readonly #options: ProgressOptions

  constructor(options: ProgressOptions) {
    this.#options = options
  }

  words(): string {
    const elapsedMs = performance.now() - this.#startedMs
    const rate = elapsedMs > 0 ? (this.done / elapsedMs) * 1000 : 0
    const parts = this.items > 0 ? [count(this.items, ...this.#options.item)] : []
    parts.push(this.#amounts(), this.#options.unit === 'bytes' ? `${bytes(rate)}/s` : `${Math.round(rate)}/s`)
    const left = this.total === undefined ? 0 : this.total - this.done
    if (left > 0 && rate > 0 && elapsedMs > 1000) parts.push(`${duration((left / rate) * 1000)} left`)
    return parts.join(', ')
  }

  share(): number {
    return this.total === undefined || this.total === 0 ? 0 : Math.min(1, this.done / this.total)
  }

  #amounts(): string {
    const { done, total } = this
    if (this.#options.unit === 'bytes') return total === undefined ? bytes(done) : `${bytes(done)} of ${bytes(total)}`
    const all = count(total ?? done, ...this.#options.item)
    return total === undefined ? all : `${done.toLocaleString('en-US')} of ${all}`
  }
}

/** Starts to show progress. Call `stop()` before anything that must be seen. */
export function startProgress(surroundings: Surroundings, output: Output, options: ProgressOptions): Progress {
  const tally = new Tally(options)
  const isTerminal = surroundings.stderr.isTTY === true
  const stop = isTerminal ? startBar(surroundings, output, options, tally) : startLines(output, options, tally)
  return {
    add(amount) {
      tally.done += amount
    },
    finish(items = 1) {
      tally.items += items
    },
    expect(amount) {
      tally.total = (tally.total ?? 0) + amount
    },
    stop
  }
}

function startLines(output: Output, { label }: ProgressOptions, tally: Tally): () => void {
  const timer = setInterval(() => output.note(`${label}: ${tally.words()}`), LINE_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

function startBar({ stderr }: Surroundings, output: Output, { label }: ProgressOptions, tally: Tally): () => void {
  const draw = () => {
    const full = Math.round(tally.share() * BAR_WIDTH)
    const bar = tally.total === undefined ? '' : `[${'='.repeat(full)}${' '.repeat(BAR_WIDTH - full)}] `
    return `${label} ${bar}${tally.words()}`
  }
  // Not its `SingleBar`: that one puts the cursor back where it was at the start, over whatever lines came out since. And line
  // wrapping stays on, or results on the same terminal would be cut off.
  const bars = new MultiBar({
    stream: stderr,
    clearOnComplete: true,
    gracefulExit: false,
    hideCursor: false,
    linewrap: true,
    // The words change with time, not with a value the library knows of.
    forceRedraw: true,
    fps: 8,
    format: draw
  })
  const timer = setTimeout(() => {
    bars.create(1, 0)
    output.beforeLine = () => stderr.write('\r\u001b[K')
  }, BAR_AFTER_MS)
  return () => {
    clearTimeout(timer)
    output.beforeLine = () => {}
    if (bars.isActive) bars.stop()
  }
}

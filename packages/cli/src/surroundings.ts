/**
 * What a command is connected to: its streams, its environment, the wish to stop. The bin hands in the process's own;
 * tests hand in others and run a command without a process.
 */
import type { Readable, Writable } from 'node:stream'
import { Interruption } from './exit-codes.js'

export interface Surroundings {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean }
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Fires when the command shall stop; its reason is an `Interruption`. */
  readonly signal: AbortSignal
  /** Makes `signal` fire, as Ctrl-C at a prompt does, where the terminal sends no signal. */
  interrupt(): void
}

/**
 * The process's own surroundings. The first SIGINT or SIGTERM asks the command to stop and clean up; a second one ends the
 * process at once, for a medium that does not answer.
 */
export function processSurroundings(): Surroundings {
  const controller = new AbortController()
  const stop = (signal: 'SIGINT' | 'SIGTERM') => {
    const interruption = new Interruption(signal)
    if (controller.signal.aborted) process.exit(interruption.exitCode)
    controller.abort(interruption)
  }
  process.on('SIGINT', () => stop('SIGINT'))
  process.on('SIGTERM', () => stop('SIGTERM'))
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signal: controller.signal,
    interrupt: () => stop('SIGINT')
  }
}

/** What a command is made with: its surroundings, and the way to work on a pool. */
import type { Command } from 'commander'
import type { ExitCode } from './exit-codes.js'
import type { Output } from './output.js'
import type { Session, SessionOptions } from './session.js'
import type { Surroundings } from './surroundings.js'

export interface Cli {
  readonly surroundings: Surroundings
  readonly output: Output
  /** Opens the pool, does the work and keeps its exit code. */
  run(command: Command, options: SessionOptions, work: (session: Session) => Promise<ExitCode>): Promise<void>
}

/** Examples under a command's help. */
export function examples(...lines: readonly (readonly [command: string, what: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length))
  const shown = lines.map(([command, what]) => `  $ ${command.padEnd(width)}  # ${what}`)
  return ['', 'Examples:', ...shown].join('\n')
}

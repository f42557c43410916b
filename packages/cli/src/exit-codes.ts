/**
 * What the command's exit code means. Scripts depend on these numbers: they are documented in the README and in `--help`,
 * and change only with a major version.
 */
import { BlobError, GcRefusedError } from '@alkblobs/core'

export const EXIT = {
  ok: 0,
  /** Something failed: a file could not be read, an entry is damaged, the medium is away. */
  failed: 1,
  /** The command line says something that cannot be done; nothing was done. */
  usage: 2,
  /** A key has no entry. */
  absent: 3,
  /** A removal was refused: the entry is pinned or live. */
  refused: 4,
  /** Ended by Ctrl-C; what was under way is cancelled and cleaned up. */
  interrupted: 130,
  /** Ended by SIGTERM, with the same care. */
  terminated: 143
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_CODES_HELP = `Exit codes:
  0    done
  1    something failed: a file, an entry, the storage
  2    a wrong command line, or nobody to answer a question; nothing was done
  3    a key has no entry
  4    refused: the entry is pinned or live
  130  interrupted (Ctrl-C), everything cancelled and cleaned up`

/** A failure that people cause and people mend: its message is all they see of it. */
export class CommandError extends Error {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** A command line that says something that cannot be done. */
export class UsageError extends CommandError {
  constructor(message: string, cause?: unknown) {
    super(EXIT.usage, message, cause)
    this.name = 'UsageError'
  }
}

/** The reason of the signal that ends a command early. */
export class Interruption extends CommandError {
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated, 'interrupted')
    this.name = 'Interruption'
  }
}

/** The exit code of a failure. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof GcRefusedError) return EXIT.refused
  if (error instanceof BlobError) {
    const isUsage = error.code === 'ERR_BLOB_INVALID_KEY' || error.code === 'ERR_BLOB_INVALID_ARGUMENT'
    return isUsage ? EXIT.usage : EXIT.failed
  }
  return EXIT.failed
}

/** Worst first: of several outcomes in one command the exit code tells the first of these. */
const WORST_FIRST: readonly ExitCode[] = [
  EXIT.interrupted,
  EXIT.terminated,
  EXIT.failed,
  EXIT.usage,
  EXIT.refused,
  EXIT.absent
]

/** The exit code of a command that had several outcomes. */
export function worst(codes: Iterable<ExitCode>): ExitCode {
  const seen = new Set(codes)
  return WORST_FIRST.find(code => seen.has(code)) ?? EXIT.ok
}

/** The question before a removal. It can be asked only where somebody can answer: with a terminal on both sides. */
import { createInterface } from 'node:readline/promises'
import { UsageError } from './exit-codes.js'
import type { Session } from './session.js'
import type { Surroundings } from './surroundings.js'

/** @throws UsageError when nobody could be asked; called before anything is done. */
export function requireAnswerable({ stdin, stderr }: Surroundings, isStdinTaken: boolean): void {
  if (isStdinTaken)
    throw new UsageError('stdin holds the list, so it cannot answer a question: look with --dry-run, then say --yes')
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    throw new UsageError('there is no terminal to ask on; say --yes to go on without a question')
  }
}

/** Asks, and answers whether the answer was yes. Anything else, the end of the input too, is no. */
export async function confirm({ surroundings, signal }: Session, question: string): Promise<boolean> {
  const { stdin, stderr } = surroundings
  const lines = createInterface({ input: stdin, output: stderr })
  // In a prompt the terminal hands Ctrl-C to the reader of lines instead of sending a signal.
  lines.on('SIGINT', () => surroundings.interrupt())
  const ended = new Promise<string>(resolve => lines.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([lines.question(`${question} [y/N] `, { signal }), ended])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    lines.close()
    signal.throwIfAborted()
  }
}

/** `why`: what protects an entry, and what a sweep would do with it now. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { bytes, duration } from '../format.js'
import { keyArgument } from '../key-argument.js'
import type { Session } from '../session.js'

const HELP = `
Tells where the entry lies, who pins it and for how long, whether a sweep has
staged it, and the verdict of a sweep now. The command knows no live list, so
what your application references is not in the answer.
${examples(['alkblobs why blake3:…', 'when rm or sweep did not do what you expected'])}`

export function whyCommand(cli: Cli): Command {
  return new Command('why')
    .summary('what protects an entry')
    .description('Explains what protects an entry, and what a sweep would do with it.')
    .argument('<key>', 'the key', keyArgument)
    .addHelpText('after', HELP)
    .action(async (key: string, _options: object, command: Command) => {
      await cli.run(command, { isPrinting: true }, session => why(session, key))
    })
}

async function why({ store, output }: Session, key: string): Promise<ExitCode> {
  const answer = await store.why(key)
  const { entry, pins, window, verdict, reason } = answer
  const staged =
    window === undefined
      ? 'not staged'
      : `staged ${duration(window.stagedAgoMs)} ago, ${window.cancelled ? 'cancelled since' : due(window.dueInMs)}`
  const lines = [
    answer.key,
    `  entry    ${entry === undefined ? 'none' : `${bytes(entry.length)} in the ${entry.tier} tier`}`,
    ...(pins.length === 0
      ? ['  pins     none']
      : pins.map(pin => `  pin      ${pin.owner}, for another ${duration(pin.expiresInMs)}`)),
    `  window   ${staged}`,
    `  verdict  ${verdict}: ${reason}`
  ]
  await output.result(answer, lines.join('\n'))
  return entry === undefined ? EXIT.absent : EXIT.ok
}

const due = (milliseconds: number): string => (milliseconds <= 0 ? 'due now' : `due in ${duration(milliseconds)}`)

/** `stat`: what the pool knows of a key, without reading content. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { keyArguments } from '../key-argument.js'
import type { Session } from '../session.js'

const HELP = examples(
  ['alkblobs stat blake3:…', 'length and tier of one blob'],
  ['alkblobs stat --json blake3:… blake3:…', 'of several, for a script']
)

export function statCommand(cli: Cli): Command {
  return new Command('stat')
    .summary('length and tier of blobs')
    .description('Prints key, length and tier of each key. Exit code 3 when one of them has no entry.')
    .argument('<key...>', 'the keys', keyArguments)
    .addHelpText('after', HELP)
    .action(async (keys: string[], _options: object, command: Command) => {
      await cli.run(command, { isPrinting: true }, session => stat(session, keys))
    })
}

async function stat({ store, output, signal }: Session, keys: readonly string[]): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.ok
  for (const key of keys) {
    signal.throwIfAborted()
    const found = await store.stat(key)
    if (found === undefined) {
      exitCode = EXIT.absent
      output.note(`${key} is not in the pool`)
      if (output.json) await output.result({ key, absent: true }, '')
      continue
    }
    const { length, algorithm, tier } = found
    await output.result({ key, length, algorithm, tier }, `${key}  ${String(length).padStart(10)}  ${tier}`)
  }
  return exitCode
}

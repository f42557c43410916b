/** `ls`: every entry of the pool, in key order. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import type { Session } from '../session.js'

interface LsOptions {
  readonly after?: string
}

const HELP = examples(
  ['alkblobs ls', 'key and length of every entry'],
  ['alkblobs ls --json | jq .length', 'for a script'],
  ['alkblobs ls --after blake3:…', 'go on behind a key']
)

export function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .summary('list the entries')
    .description('Prints key and length of every entry, in key order.')
    .option('--after <key>', 'only entries behind this key')
    .addHelpText('after', HELP)
    .action(async (options: LsOptions, command: Command) => {
      await cli.run(command, { isPrinting: true, mentionsAbsentPool: true }, session => ls(session, options))
    })
}

async function ls({ store, output, signal }: Session, { after }: LsOptions): Promise<ExitCode> {
  for await (const { key, length } of store.list(after === undefined ? { signal } : { after, signal })) {
    signal.throwIfAborted()
    await output.result({ key, length }, `${key}  ${String(length).padStart(10)}`)
  }
  return EXIT.ok
}

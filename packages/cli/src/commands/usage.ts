/** `usage`: how much the pool holds. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { bytes } from '../format.js'
import type { Session } from '../session.js'

const HELP = examples(['alkblobs usage', 'entries and bytes in each tier'], ['alkblobs usage --json', 'for monitoring'])

export function usageCommand(cli: Cli): Command {
  return new Command('usage')
    .summary('how much the pool holds')
    .description('Prints entries and bytes of each tier, and what waits: pins, staged entries, stages, trash.')
    .addHelpText('after', HELP)
    .action(async (_options: object, command: Command) => {
      await cli.run(command, { isPrinting: true, mentionsAbsentPool: true }, usage)
    })
}

async function usage({ store, output }: Session): Promise<ExitCode> {
  const found = await store.usage()
  const { perTier, pins, window, stages, trash } = found
  const row = (name: string, number: number, length: number) =>
    `${name.padEnd(8)}${number.toLocaleString('en-US').padStart(12)}${bytes(length).padStart(10)}`
  const lines = [
    `${'tier'.padEnd(8)}${'entries'.padStart(12)}${'bytes'.padStart(10)}`,
    row('kv', perTier.kv.entries, perTier.kv.bytes),
    row('large', perTier.large.entries, perTier.large.bytes),
    row('all', found.entries, found.bytes),
    `pins ${pins}, staged for removal ${window}, writes under way ${stages}, trash ${trash}`
  ]
  await output.result(found, lines.join('\n'))
  return EXIT.ok
}

/** `settings`: what is recorded in the pool, and changing it for every process that uses it. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { confirm, requireAnswerable } from '../confirm.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { parseMilliseconds, type Session } from '../session.js'

interface SettingsOptions {
  readonly windowDelay?: number
  readonly acknowledgeMove?: boolean
  readonly yes?: boolean
}

const HELP = `
A change shows what it does and asks, unless --yes.

--acknowledge-move is for a pool that refuses sweeps because it is found on
another server, in another database or after a failover. Say it only if this is
the pool itself and nothing else uses its large blobs; a copy wants fork.
${examples(
  ['alkblobs settings', 'shows them'],
  ['alkblobs settings --window-delay 86400000', 'a day from staging to removal'],
  ['alkblobs settings --acknowledge-move', 'after a restore or a failover']
)}`

export function settingsCommand(cli: Cli): Command {
  return new Command('settings')
    .summary('show or change what the pool records')
    .description(
      'Prints the settings of the pool, which are the same for every process that uses it, and changes them.'
    )
    .option('--window-delay <ms>', 'shortest time from staging to removal', parseMilliseconds)
    .option('--acknowledge-move', 'this is the pool itself, wherever it is found now')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', HELP)
    .action(async (options: SettingsOptions, command: Command) => {
      const isChange = options.windowDelay !== undefined || options.acknowledgeMove === true
      if (isChange && options.yes !== true) requireAnswerable(cli.surroundings, false)
      const how = { isPrinting: !isChange, mentionsAbsentPool: true }
      await cli.run(command, how, session => settings(session, options))
    })
}

async function settings(session: Session, options: SettingsOptions): Promise<ExitCode> {
  const { store, output } = session
  const { windowDelay, acknowledgeMove = false, yes = false } = options
  const isWanted = async (what: string) => yes || (await confirm(session, what))
  if (windowDelay !== undefined) {
    const { windowDelayMs } = await store.settings()
    output.note(`window delay ${windowDelayMs} ms, then ${windowDelay} ms; what is staged waits for the longer of both`)
    if (!(await isWanted('Change it for every process that uses the pool?'))) return unchanged(session)
    await store.configure({ windowDelayMs: windowDelay })
  }
  if (acknowledgeMove) {
    output.note('sweeps and drops go on here; large blobs that another pool still uses would be lost to it')
    if (!(await isWanted('Is this the pool itself, and no copy of one that lives on?'))) return unchanged(session)
    await store.acknowledgeMove()
  }
  const found = await store.settings()
  await output.result(found, `window delay ${found.windowDelayMs} ms`)
  return EXIT.ok
}

function unchanged({ output }: Session): ExitCode {
  output.note('nothing was changed')
  return EXIT.ok
}

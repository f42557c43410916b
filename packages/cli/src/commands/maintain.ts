/** `maintain`: reclaims what dead processes left, without looking at what is live. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { CommandError, EXIT, type ExitCode } from '../exit-codes.js'
import { describe } from '../failure.js'
import { bytes, count } from '../format.js'
import type { Session } from '../session.js'

const HELP = `
Ends pins and stages that have expired, frees the trash, and looks for bodies
that no record knows. It removes no entry.
${examples(['alkblobs maintain', 'from a timer, or when usage shows trash'])}`

export function maintainCommand(cli: Cli): Command {
  return new Command('maintain')
    .summary('reclaim what dead processes left')
    .description('Reclaims expired pins, expired stages and trash.')
    .addHelpText('after', HELP)
    .action(async (_options: object, command: Command) => {
      await cli.run(command, { isPrinting: false, mentionsAbsentPool: true }, maintain)
    })
}

async function maintain({ store, output, signal }: Session): Promise<ExitCode> {
  // One command is one run, so it cannot leave the look through the medium to every so many runs.
  const report = await store.maintain({ signal, scan: true })
  if (report.aborted !== undefined) {
    signal.throwIfAborted()
    const isHeld = report.aborted === 'SweeperLock'
    throw new CommandError(
      EXIT.failed,
      isHeld ? 'another process is sweeping this pool; try again later' : 'the lease was lost; try again'
    )
  }
  const { pinsReaped, stagesReclaimed, dropped, bytesDropped, orphans } = report
  const failed = report.failed.map(({ cause, ...each }) => ({ ...each, cause: describe(cause) }))
  await output.result(
    { ...report, failed },
    `${count(pinsReaped, 'expired pin')}, ${count(stagesReclaimed, 'expired stage')}, ${count(orphans, 'orphan')} reclaimed; ` +
      `${count(dropped, 'body', 'bodies')} freed, ${bytes(bytesDropped)}`
  )
  for (const { cause, ...each } of report.failed) output.problem(cause, each.locator)
  return failed.length > 0 ? EXIT.failed : EXIT.ok
}

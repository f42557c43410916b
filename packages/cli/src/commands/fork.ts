/** `fork`: makes a copied pool one of its own. */
import { PoolRefusedError } from '@alkblobs/core'
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { confirm, requireAnswerable } from '../confirm.js'
import { EXIT, type ExitCode, UsageError } from '../exit-codes.js'
import type { Session } from '../session.js'

interface ForkOptions {
  readonly bodiesCopied?: boolean
  readonly yes?: boolean
}

const HELP = `
A restored or cloned pool has the id of its original. Give it one of its own
before it is swept: with the same large blobs, each would free what the other
still names. Nobody else may be using the copy meanwhile. Shows what it does and
asks, unless --yes.
${examples(
  ['alkblobs --store sqlite:./copy fork --bodies-copied', 'a copied folder'],
  ['alkblobs --store postgres://…/clone fork', 'a pool of small blobs alone']
)}`

export function forkCommand(cli: Cli): Command {
  return new Command('fork')
    .summary('make a copied pool one of its own')
    .description('Gives a copied pool an id of its own, so that it can free nothing of its original.')
    .option('--bodies-copied', 'the large blobs of the store that is named are a copy too')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', HELP)
    .action(async ({ bodiesCopied = false, yes = false }: ForkOptions, command: Command) => {
      if (!yes) requireAnswerable(cli.surroundings, false)
      await cli.run(command, { isPrinting: false }, session => fork(session, bodiesCopied, yes))
    })
}

async function fork(session: Session, bodiesCopied: boolean, isSure: boolean): Promise<ExitCode> {
  const { store, address, output } = session
  output.note(`${address.url} gets an id of its own${bodiesCopied ? ', and its large blobs with it' : ''}`)
  if (!isSure && !(await confirm(session, 'Is it a copy that nobody else is using?'))) {
    output.note('nothing was changed')
    return EXIT.ok
  }
  const poolId = await store.fork(bodiesCopied ? { bodies: 'copied' } : {}).catch(error => {
    if (bodiesCopied || !(error instanceof PoolRefusedError) || error.reason !== 'media') throw error
    throw new UsageError(
      'the pool has large blobs, and its original still uses its own: copy them too, name the copy, and say --bodies-copied',
      error
    )
  })
  await output.result({ poolId }, `pool ${poolId}`)
  return EXIT.ok
}

/** `rm`: removes entries by their keys, unless something protects them. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { confirm, requireAnswerable } from '../confirm.js'
import { EXIT, type ExitCode, worst } from '../exit-codes.js'
import { bytes, count, entries } from '../format.js'
import { keyArguments } from '../key-argument.js'
import type { Session } from '../session.js'

interface RmOptions {
  readonly yes?: boolean
}

const OUTCOMES: Readonly<Record<string, { readonly words: string; readonly exitCode: ExitCode }>> = {
  deleted: { words: 'removed', exitCode: EXIT.ok },
  absent: { words: 'is not in the pool', exitCode: EXIT.absent },
  pinned: {
    words: 'was kept: it is pinned, or was put a moment ago; `alkblobs why` tells by whom',
    exitCode: EXIT.refused
  },
  live: { words: 'was kept: a liveness source references it', exitCode: EXIT.refused },
  'source-failed': { words: 'was kept: a liveness source could not say whether it is live', exitCode: EXIT.refused }
}

const HELP = `
Shows what would be removed and asks, unless --yes. This command knows no live
list: whether anything still references a key is yours to know. To remove what
nothing references, use sweep.
${examples(['alkblobs rm blake3:…', 'asks first'], ['alkblobs rm --yes blake3:… blake3:…', 'in a script'])}`

export function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .summary('remove entries')
    .description('Removes entries, unless they are pinned.')
    .argument('<key...>', 'the keys', keyArguments)
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', HELP)
    .action(async (keys: string[], { yes = false }: RmOptions, command: Command) => {
      if (!yes) requireAnswerable(cli.surroundings, false)
      await cli.run(command, { isPrinting: false }, session => remove(session, [...new Set(keys)], yes))
    })
}

async function remove(session: Session, keys: readonly string[], isSure: boolean): Promise<ExitCode> {
  const { store, output, signal } = session
  if (!isSure) {
    let total = 0
    let there = 0
    for (const key of keys) {
      const found = await store.stat(key)
      output.note(found === undefined ? `${key}  is not in the pool` : `${key}  ${String(found.length).padStart(10)}`)
      if (found !== undefined) there += 1
      total += found?.length ?? 0
    }
    if (there > 0 && !(await confirm(session, `Remove ${entries(there)}, ${bytes(total)}?`))) {
      output.note('nothing was removed')
      return EXIT.ok
    }
  }
  const codes: ExitCode[] = []
  for (const [key, outcome] of await store.deleteMany(keys, { signal })) {
    const { words, exitCode } = OUTCOMES[outcome] ?? { words: outcome, exitCode: EXIT.failed }
    codes.push(exitCode)
    if (exitCode !== EXIT.ok) output.note(`${key}  ${words}`)
    if (exitCode === EXIT.ok || output.json) await output.result({ key, outcome }, `${key}  ${words}`)
  }
  const { trash } = await store.usage()
  if (codes.includes(EXIT.ok) && trash > 0) {
    const waiting = count(trash, 'large body waits', 'large bodies wait')
    output.note(`${waiting} in the trash; a sweep or maintain frees the space after a few minutes`)
  }
  return worst(codes)
}

/** The `alkblobs` command: its subcommands, its global options, and how a run ends. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { Cli } from './cli.js'
import { forkCommand } from './commands/fork.js'
import { getCommand } from './commands/get.js'
import { lsCommand } from './commands/ls.js'
import { maintainCommand } from './commands/maintain.js'
import { putCommand } from './commands/put.js'
import { rmCommand } from './commands/rm.js'
import { settingsCommand } from './commands/settings.js'
import { statCommand } from './commands/stat.js'
import { sweepCommand } from './commands/sweep.js'
import { usageCommand } from './commands/usage.js'
import { verifyCommand } from './commands/verify.js'
import { whyCommand } from './commands/why.js'
import { EXIT, EXIT_CODES_HELP, type ExitCode, exitCodeOf } from './exit-codes.js'
import { Output, ReaderGone } from './output.js'
import { type GlobalOptions, inSession, parseMilliseconds } from './session.js'
import { DEFAULT_STORE } from './store-url.js'
import type { Surroundings } from './surroundings.js'

const COMMANDS: readonly ((cli: Cli) => Command)[] = [
  putCommand,
  getCommand,
  statCommand,
  lsCommand,
  rmCommand,
  sweepCommand,
  maintainCommand,
  verifyCommand,
  whyCommand,
  usageCommand,
  settingsCommand,
  forkCommand
]

const STORES_HELP = `
Stores:
  sqlite:<folder>  small blobs in <folder>/kv.db, large ones in <folder>/large
  postgres://<user>@<host>/<database>[?schema=<name>][&root=<folder> | &large=pglo]
                   small blobs in a schema of the database; large ones as files
                   in a folder, or as large objects of the database
  mem:             nothing is kept; for trying things out
  Without --store the command uses $ALKBLOBS_STORE, then ${DEFAULT_STORE}.

${EXIT_CODES_HELP}`

/** Runs one command line (without the program's name) to its end and gives its exit code. Never throws, never exits. */
export async function run(argv: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const output = new Output(surroundings)
  let exitCode: ExitCode = EXIT.ok
  const cli: Cli = {
    surroundings,
    output,
    async run(command, options, work) {
      const globals = command.optsWithGlobals<GlobalOptions>()
      output.json = globals.json === true
      exitCode = await inSession(surroundings, output, globals, options, work)
    }
  }
  try {
    await programFor(cli).parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    return ended(error, cli)
  }
}

function programFor(cli: Cli): Command {
  const { surroundings, output } = cli
  const program = new Command('alkblobs')
    .description('Keeps immutable bytes under a key derived from their content, inside storage you already run.')
    .version(version(), '-V, --version')
    .option('--store <url>', 'the pool to work on')
    .option('--json', 'print one JSON object a line on stdout')
    .option('--window-delay-ms <n>', 'shortest time from staging to removal, for a new pool', parseMilliseconds)
    .addHelpText('after', STORES_HELP)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: text => void surroundings.stdout.write(text),
      writeErr: text => void surroundings.stderr.write(text),
      outputError: (text, write) => write(`${output.noteColors.red('alkblobs:')} ${text.replace(/^error: /, '')}`)
    })
    .showHelpAfterError(false)
    .exitOverride()
  for (const make of COMMANDS) program.addCommand(make(cli).copyInheritedSettings(program))
  return program
}

function version(): string {
  const file = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { version: string }).version
}

/** The exit code of a run that ended by a failure; says what happened unless that is evident. */
function ended(error: unknown, { surroundings, output }: Cli): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (surroundings.signal.aborted) {
    output.note('interrupted')
    return exitCodeOf(surroundings.signal.reason)
  }
  if (error instanceof ReaderGone || output.readerGone.aborted) return EXIT.ok
  output.problem(error)
  return exitCodeOf(error)
}

/** `sweep`: one garbage collection, with a list of live keys, columns of the database, or both as its liveness sources. */
import { createReadStream } from 'node:fs'
import type { Store, SweepReport, TableSource } from '@alkblobs/core'
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { confirm, requireAnswerable } from '../confirm.js'
import { CommandError, EXIT, type ExitCode, UsageError } from '../exit-codes.js'
import { codeOf, describe } from '../failure.js'
import { bytes, count, duration, entries, printable } from '../format.js'
import { parseLiveFile } from '../live-file.js'
import { startProgress } from '../progress.js'
import type { Session } from '../session.js'
import type { Surroundings } from '../surroundings.js'
import { parseTableColumn } from '../table-name.js'

interface SweepOptions {
  readonly live?: string
  readonly liveSql?: readonly TableSource[]
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly allowEmpty?: boolean
}

const HELP = `
The live list names every key that must stay, one a line; blank lines and
lines that start with # are skipped. A line that is no key ends the sweep
before it begins, with its number. A list without a single key is refused
unless --allow-empty.

With --live-sql the database says what must stay: every key in that column, as
text in the written form of keys or as its 32 bytes. The database of the pool
judges it, so the pool is one in PostgreSQL. Nothing that is referenced when an
entry would go is removed. --live and --live-sql add up.

Removal takes two sweeps. The first stages what nothing protects; one that
runs after the pool's window delay removes what was staged and is still
unprotected: not live, not pinned, not put again since. The command shows what
it would do and asks, unless --yes.
${examples(
  ['alkblobs sweep --live keys.txt --dry-run', 'only look'],
  ['alkblobs sweep --live keys.txt', 'look, ask, sweep'],
  ['psql … | alkblobs sweep --live - --yes', 'from a database'],
  ['alkblobs sweep --live-sql app.files.blob_key', 'a column of the database that the pool is in']
)}`

export function sweepCommand(cli: Cli): Command {
  return new Command('sweep')
    .summary('stage and remove what nothing references')
    .description('Stages the entries that nothing protects, and removes those an earlier sweep staged.')
    .option('--live <file>', 'the keys that must stay, one a line; - for stdin')
    .option('--live-sql <table.column>', 'a column with the keys that must stay; again for more', addColumn)
    .option('-n, --dry-run', 'show what a sweep would do, change nothing')
    .option('-y, --yes', 'do not ask')
    .option('--allow-empty', 'accept a live list without a key')
    .addHelpText('after', HELP)
    .action(async (options: SweepOptions, command: Command) => {
      if (options.live === undefined && options.liveSql === undefined) {
        throw new UsageError('say what must stay: --live <file>, or --live-sql <table.column>')
      }
      const asks = options.yes !== true && options.dryRun !== true
      if (asks) requireAnswerable(cli.surroundings, options.live === '-')
      // Read once, before anything else: both looks see the same list, and a bad line ends the command before it begins.
      const { live: list, allowEmpty } = options
      const live = list === undefined ? undefined : await readLive(cli.surroundings, list, allowEmpty)
      await cli.run(command, { isPrinting: false, mentionsAbsentPool: true }, session => sweep(session, live, options))
    })
}

function addColumn(text: string, before: readonly TableSource[] = []): readonly TableSource[] {
  return [...before, parseTableColumn(text)]
}

async function readLive({ stdin, signal }: Surroundings, live: string, allowEmpty = false): Promise<readonly string[]> {
  const keys: string[] = []
  const chunks = live === '-' ? stdin : createReadStream(live)
  const stop = () => chunks.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    for await (const key of parseLiveFile(chunks)) keys.push(key)
  } catch (error) {
    signal.throwIfAborted()
    if (codeOf(error) === undefined) throw error
    throw new UsageError(`the live list ${printable(live)} cannot be read: ${describe(error)}`, error)
  } finally {
    signal.removeEventListener('abort', stop)
  }
  if (keys.length === 0 && !allowEmpty) {
    throw new UsageError('the live list names no key, so every entry would go; if that is meant, say --allow-empty')
  }
  return keys
}

async function sweep(
  session: Session,
  live: readonly string[] | undefined,
  { live: list = '', liveSql = [], allowEmpty = false, ...options }: SweepOptions
): Promise<ExitCode> {
  const { store, output } = session
  if (live !== undefined) store.protect({ name: list === '-' ? 'stdin' : list, live: () => live })
  for (const column of liveSql) await store.protect(column)
  if (options.yes !== true || options.dryRun === true || (live === undefined && !allowEmpty)) {
    const preview = done(await swept(session, true), session)
    // How many keys a column names only the database knows; that no entry is among them shows here.
    if (live === undefined && !allowEmpty && preview.live === 0 && preview.scanned > 0) {
      throw new UsageError('no entry is referenced, so every one would go; if that is meant, say --allow-empty')
    }
    if (options.yes !== true || options.dryRun === true) {
      const goOn = await shown(session, preview, options.dryRun === true)
      if (!goOn) return EXIT.ok
    }
  }
  const report = done(await swept(session, false), session)
  const { windowDelayMs } = await store.settings()
  await output.result({ ...plain(report), windowDelayMs }, await words(report, store, windowDelayMs))
  for (const { key, locator, cause } of report.failed)
    output.problem(cause, `${key ?? locator} was removed, its bytes not yet`)
  return report.failed.length > 0 ? EXIT.failed : EXIT.ok
}

/** Shows what a sweep would do; answers whether it shall be done. */
async function shown(session: Session, preview: SweepReport, isDryRun: boolean): Promise<boolean> {
  const { store, output } = session
  const { window } = await store.usage()
  const { windowDelayMs } = await store.settings()
  const { scanned, candidatesStaged, alreadyStaged } = preview
  const lines = [
    `${entries(scanned)}: ${preview.live} protected, ${alreadyStaged} staged by earlier sweeps, ${candidatesStaged} unprotected`,
    window > 0
      ? `a sweep now would remove those staged long enough ago and still unprotected (of ${window} staged)`
      : '',
    candidatesStaged > 0
      ? `a sweep now would stage ${entries(candidatesStaged)}, to be removed by a sweep ${after(windowDelayMs)}`
      : ''
  ].filter(line => line !== '')
  if (isDryRun) {
    await output.result({ dryRun: true, ...plain(preview), window, windowDelayMs }, lines.join('\n'))
    return false
  }
  output.note(lines.join('\n'))
  if (await confirm(session, 'Sweep?')) return true
  output.note('nothing was changed')
  return false
}

async function swept({ store, output, surroundings, signal }: Session, dryRun: boolean): Promise<SweepReport> {
  const progress = startProgress(surroundings, output, {
    label: dryRun ? 'looking' : 'sweeping',
    unit: 'items',
    item: ['entry', 'entries']
  })
  try {
    progress.expect((await store.usage()).entries)
    let seen = 0
    return await store.sweep({
      signal,
      dryRun,
      onProgress: ({ scanned }) => {
        progress.add(scanned - seen)
        seen = scanned
      }
    })
  } finally {
    progress.stop()
  }
}

/** A report of a sweep that came to its end. Whatever it did before it gave up is in the message of the failure. */
function done(report: SweepReport, { signal }: Session): SweepReport {
  const { aborted, cause, source } = report
  if (aborted === undefined) return report
  signal.throwIfAborted()
  if (aborted === 'SweeperLock')
    throw new CommandError(EXIT.failed, 'another process is sweeping this pool; try again later')
  const why = cause === undefined ? '' : ` (${source === undefined ? '' : `${source}: `}${describe(cause)})`
  const did = `${report.deleted} removed, ${report.candidatesStaged} staged before that`
  throw new CommandError(EXIT.failed, `the sweep gave up: ${aborted}${why}; ${did}`, cause)
}

/** When what is staged now may go at the earliest. */
function after(windowDelayMs: number): string {
  return windowDelayMs === 0 ? 'after this one' : `after ${duration(windowDelayMs)}`
}

async function words(report: SweepReport, store: Store, windowDelayMs: number): Promise<string> {
  const { scanned, live, alreadyStaged, candidatesStaged, deleted, cancelledByArbitration } = report
  const { trash } = await store.usage()
  const lines = [
    `removed ${entries(deleted)}, ${bytes(report.bytesDeleted)} freed`,
    `kept ${live} of ${entries(scanned)}; ${alreadyStaged} staged earlier`,
    candidatesStaged > 0 && store.form === 'durable'
      ? `staged ${candidatesStaged} now; they can be removed by a sweep ${after(windowDelayMs)}`
      : '',
    cancelledByArbitration > 0
      ? `${cancelledByArbitration} staged earlier were kept: protected or put again since`
      : '',
    trash > 0
      ? `${count(trash, 'body waits', 'bodies wait')} in the trash; a sweep or maintain frees what is there after a few minutes`
      : ''
  ]
  return lines.filter(line => line !== '').join('\n')
}

/** A report as JSON can hold it. */
function plain({ cause, failed, ...report }: SweepReport): object {
  return {
    ...report,
    ...(cause === undefined ? {} : { cause: describe(cause) }),
    failed: failed.map(each => ({ ...each, cause: describe(each.cause) }))
  }
}

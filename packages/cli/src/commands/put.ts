/** `put`: files, folders and stdin into the pool, several at once, reported in the order they were named. */
import { EngineError, PoolRefusedError } from '@alkblobs/core'
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { EXIT, type ExitCode, exitCodeOf, worst } from '../exit-codes.js'
import { codeOf, describe } from '../failure.js'
import { withFileContent } from '../file-content.js'
import { bytes, count, printable } from '../format.js'
import { inOrder } from '../in-order.js'
import { type Progress, startProgress } from '../progress.js'
import type { Session } from '../session.js'
import { folderOf } from '../store-url.js'
import { type Found, measure, requireOneStdin, walk } from '../walk.js'

/** Enough to keep the disk and the derivation busy; more would only hold more memory. */
const PUTS_AT_ONCE = 16

interface PutOptions {
  readonly verify?: boolean
}

type Outcome =
  | {
      readonly kind: 'stored'
      readonly path: string
      readonly key: string
      readonly length: number
      readonly created: boolean
    }
  | { readonly kind: 'skipped'; readonly path: string; readonly reason: string }
  | {
      readonly kind: 'failed'
      readonly path: string
      readonly reason: string
      readonly code: string | undefined
      readonly exitCode: ExitCode
    }

const HELP = `
Prints a line for each file, in the order of the arguments: key, length,
whether the entry was created or existed, path. Folders are put recursively.
Symbolic links are not followed and special files not read; both are reported.
A file that cannot be read, or changes while it is read, is reported; the
others go on, and the exit code is 1.

When the command ends, nothing holds the blobs any more but the pool's window
delay (an hour unless the pool says otherwise): a sweep whose live list does
not name a key stages it, and only a sweep after the delay removes it. Write
the keys down where your live list comes from before then.
${examples(
  ['alkblobs put photo.jpg', 'one file'],
  ['alkblobs put documents/ images/', 'folders, recursively'],
  ['tar c site | alkblobs put -', 'stdin'],
  ['alkblobs put --json site/ > manifest.jsonl', 'a manifest to keep']
)}`

export function putCommand(cli: Cli): Command {
  return new Command('put')
    .summary('store files, folders or stdin')
    .description('Stores files, folders (recursively) and, for -, stdin.')
    .argument('<path...>', 'files, folders, or - for stdin')
    .option('--verify', 'read what is there already back before trusting it, and replace what is damaged')
    .addHelpText('after', HELP)
    .action(async (paths: string[], { verify = false }: PutOptions, command: Command) => {
      requireOneStdin(paths)
      await cli.run(command, { isPrinting: false }, session => put(session, paths, verify))
    })
}

async function put(session: Session, paths: readonly string[], verify: boolean): Promise<ExitCode> {
  const { output, surroundings, signal } = session
  const pool = folderOf(session.address)
  const progress = startProgress(surroundings, output, { label: 'putting', unit: 'bytes', item: ['file', 'files'] })
  const measuring = new AbortController()
  // A total that still grows would say less than none, so there is one only when everything was looked at.
  const measured =
    surroundings.stderr.isTTY === true
      ? measure(paths, pool, AbortSignal.any([signal, measuring.signal])).then(progress.expect)
      : undefined
  const sums = { stored: 0, created: 0, bytes: 0, skipped: 0, failed: 0 }
  const codes = new Set<ExitCode>()
  try {
    for await (const outcome of inOrder(walk(paths, pool), PUTS_AT_ONCE, found =>
      putOne(session, found, { progress, verify })
    )) {
      await report(session, outcome)
      if (outcome.kind === 'stored') {
        sums.stored += 1
        sums.bytes += outcome.length
        if (outcome.created) sums.created += 1
      } else sums[outcome.kind] += 1
      if (outcome.kind === 'failed') codes.add(outcome.exitCode)
    }
  } finally {
    measuring.abort()
    await measured?.catch(() => {})
    progress.stop()
  }
  const stored = `${count(sums.stored, 'file')}, ${bytes(sums.bytes)}: ${sums.created} created, ${sums.stored - sums.created} existed`
  const others = [sums.skipped > 0 ? `${sums.skipped} skipped` : '', sums.failed > 0 ? `${sums.failed} failed` : '']
  output.note([stored, ...others.filter(each => each !== '')].join(', '))
  return worst(codes)
}

interface Manner {
  readonly progress: Progress
  readonly verify: boolean
}

async function putOne(
  { store, surroundings, signal }: Session,
  found: Found,
  { progress, verify }: Manner
): Promise<Outcome> {
  const path = found.name
  if (found.kind === 'skipped') return { kind: 'skipped', path, reason: found.reason }
  if (found.kind === 'failed') {
    return { kind: 'failed', path, reason: found.reason, code: codeOf(found.error), exitCode: EXIT.failed }
  }
  signal.throwIfAborted()
  try {
    const receipt =
      found.kind === 'stdin'
        ? await store.put(counted(surroundings.stdin, progress), { signal, verify })
        : await withFileContent(found.path, progress.add, ({ content, length }) =>
            store.put(content, { signal, verify, ...(length !== undefined && { length }) })
          )
    const { key, length, created } = receipt
    await receipt.release()
    progress.finish()
    return { kind: 'stored', path, key, length, created }
  } catch (error) {
    signal.throwIfAborted()
    // A file that cannot be put leaves the others alone; a pool that takes nothing would fail for every one of them.
    if (isOfThePool(error)) throw error
    return { kind: 'failed', path, reason: describe(error), code: codeOf(error), exitCode: exitCodeOf(error) }
  }
}

const isOfThePool = (error: unknown): boolean =>
  error instanceof PoolRefusedError || (error instanceof EngineError && !error.transient)

async function* counted(chunks: AsyncIterable<Uint8Array>, progress: Progress): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    progress.add(chunk.byteLength)
    yield chunk
  }
}

async function report({ output }: Session, outcome: Outcome): Promise<void> {
  const { path } = outcome
  const shown = printable(path)
  if (outcome.kind === 'stored') {
    const { key, length, created } = outcome
    const word = created ? output.colors.green('created') : output.colors.dim('existed')
    await output.result({ key, length, created, path }, `${key}  ${String(length).padStart(10)}  ${word}  ${shown}`)
    return
  }
  if (outcome.kind === 'skipped') {
    output.note(`skipped ${shown}: ${outcome.reason}`)
    if (output.json) await output.result({ path, skipped: outcome.reason }, '')
    return
  }
  output.note(`${output.noteColors.red('alkblobs:')} ${shown}: ${outcome.reason}`)
  const error =
    outcome.code === undefined ? { message: outcome.reason } : { code: outcome.code, message: outcome.reason }
  if (output.json) await output.result({ path, error }, '')
}

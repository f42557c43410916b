/** `get`: one blob, or a part of it, to stdout or into a file. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { CommandError, EXIT, type ExitCode } from '../exit-codes.js'
import { bytes } from '../format.js'
import { keyArgument } from '../key-argument.js'
import { type Progress, startProgress } from '../progress.js'
import { parseRange, type Range, resolveRange } from '../range.js'
import type { Session } from '../session.js'
import { requireWritable, writeWhole } from '../whole-file.js'

interface GetOptions {
  readonly output?: string
  readonly force?: boolean
  readonly range?: Range
}

const HELP = `
Ranges are written as in HTTP, both ends inclusive: 0-99 (the first hundred
bytes), 100- (from byte 100 to the end), -100 (the last hundred). A whole blob
is verified against its key while it is read, a range is not.

With -o the file appears under its name only when it is whole and verified;
until then the bytes lie in a temporary file beside it, which is removed when
anything fails. On stdout a damaged blob ends early, with exit code 1.
${examples(
  ['alkblobs get blake3:… > photo.jpg', 'to stdout'],
  ['alkblobs get blake3:… -o photo.jpg', 'whole or not at all'],
  ['alkblobs get blake3:… --range 0-1023 | file -', 'the first KiB']
)}`

export function getCommand(cli: Cli): Command {
  return new Command('get')
    .summary('print a blob, or write it to a file')
    .description('Prints the bytes of a blob, or writes them to a file.')
    .argument('<key>', 'the key of the blob', keyArgument)
    .option('-o, --output <file>', 'write to a file; refuses one that exists')
    .option('-f, --force', 'with -o: replace a file that exists')
    .option('-r, --range <range>', 'only these bytes: 0-99, 100- or -100', parseRange)
    .addHelpText('after', HELP)
    .action(async (key: string, options: GetOptions, command: Command) => {
      const isToFile = options.output !== undefined && options.output !== '-'
      await cli.run(command, { isPrinting: !isToFile }, session => get(session, key, options))
    })
}

async function get(
  session: Session,
  key: string,
  { output: file, force = false, range }: GetOptions
): Promise<ExitCode> {
  const { store, output, surroundings, signal } = session
  const isToFile = file !== undefined && file !== '-'
  if (isToFile) await requireWritable(file, force)
  const blob = await store.get(key, { signal })
  if (blob === undefined) throw new CommandError(EXIT.absent, `${key} is not in the pool`)
  const part = range === undefined ? undefined : resolveRange(range, blob.size)
  const content = part === undefined ? blob : blob.slice(part.start, part.end)
  if (!isToFile) {
    for await (const chunk of content) {
      signal.throwIfAborted()
      await output.content(chunk)
    }
    return EXIT.ok
  }
  const progress = startProgress(surroundings, output, { label: 'getting', unit: 'bytes', item: ['file', 'files'] })
  progress.expect(content.size)
  try {
    await writeWhole(file, counted(content, progress), { replaces: force, signal })
  } finally {
    progress.stop()
  }
  await output.result({ key, length: content.size, file }, `${key}  ${bytes(content.size)}  ${file}`)
  return EXIT.ok
}

async function* counted(chunks: AsyncIterable<Uint8Array>, progress: Progress): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    progress.add(chunk.byteLength)
    yield chunk
  }
}

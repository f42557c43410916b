/** `verify`: reads everything and tells what is not as it should be. */
import { Command } from 'commander'
import { type Cli, examples } from '../cli.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { bytes, count, entries, printable } from '../format.js'
import { startProgress } from '../progress.js'
import type { Session } from '../session.js'

interface VerifyOptions {
  readonly repair?: boolean
}

const HELP = `
Derives the key of every entry again from its bytes. Reports entries that are
damaged (corrupt), records without bytes (dangling) and bodies without a
record (orphans); exit code 1 when there is any. --repair removes dangling
records and orphans that nothing protects. A damaged entry is never removed:
put the same content again and it is whole.
${examples(['alkblobs verify', 'read everything, change nothing'], ['alkblobs verify --repair', 'and remove what has no other half'])}`

export function verifyCommand(cli: Cli): Command {
  return new Command('verify')
    .summary('read everything and report damage')
    .description('Reads every entry and checks it against its key.')
    .option('--repair', 'remove dangling records and orphans')
    .addHelpText('after', HELP)
    .action(async ({ repair = false }: VerifyOptions, command: Command) => {
      await cli.run(command, { isPrinting: false, mentionsAbsentPool: true }, session => verify(session, repair))
    })
}

async function verify({ store, output, surroundings, signal }: Session, repair: boolean): Promise<ExitCode> {
  const progress = startProgress(surroundings, output, {
    label: 'verifying',
    unit: 'bytes',
    item: ['entry', 'entries']
  })
  progress.expect((await store.usage()).bytes)
  let report: Awaited<ReturnType<typeof store.verify>>
  try {
    let seen = { entries: 0, bytes: 0 }
    report = await store.verify({
      signal,
      repair,
      onProgress: now => {
        progress.add(now.bytes - seen.bytes)
        progress.finish(now.entries - seen.entries)
        seen = { entries: now.entries, bytes: now.bytes }
      }
    })
  } finally {
    progress.stop()
  }
  const { corrupt, dangling, orphans, repaired, kept, clean } = report
  const mark = output.colors.red
  for (const { key, found } of corrupt) {
    await output.result({ kind: 'corrupt', key, found }, `${mark('corrupt')}   ${key}  ${printable(found)}`)
  }
  for (const { key } of dangling) await output.result({ kind: 'dangling', key }, `${mark('dangling')}  ${key}`)
  for (const orphan of orphans) {
    const length = orphan.length === undefined ? '' : `  ${bytes(orphan.length)}`
    await output.result({ kind: 'orphan', ...orphan }, `${mark('orphan')}    ${printable(orphan.what)}${length}`)
  }
  for (const what of repaired) await output.result({ kind: 'repaired', what }, `repaired  ${printable(what)}`)
  for (const { key, reason } of kept) await output.result({ kind: 'kept', key, reason }, `kept      ${key}  ${reason}`)
  const findings = corrupt.length + dangling.length + orphans.length
  await output.result(
    { kind: 'summary', entries: report.entries, bytes: report.bytes, findings, repaired: repaired.length, clean },
    `${entries(report.entries)}, ${bytes(report.bytes)} checked: ${clean ? 'all as they should be' : count(findings, 'finding')}` +
      (repaired.length > 0 ? `, ${repaired.length} repaired` : '')
  )
  return clean || findings === repaired.length ? EXIT.ok : EXIT.failed
}

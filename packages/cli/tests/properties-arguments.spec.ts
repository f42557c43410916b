/** Whole command lines, put together from what is right, what is nearly right and what is neither: an exit code, never a crash. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EXIT } from '../src/exit-codes.js'
import { run } from '../src/program.js'

const KEY = `blake3:${'0'.repeat(64)}`

async function ran(args: readonly string[], input: Uint8Array, env: Record<string, string>) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const [out, err] = [text(stdout), text(stderr)]
  stdin.end(input)
  const { signal } = new AbortController()
  const code = await run(args, { stdin, stdout, stderr, env, signal, interrupt: () => {} })
  stdout.end()
  stderr.end()
  return { code, stdout: await out, stderr: await err }
}

/** Nothing that leads to a file or a server: only the parsing is tried, on a pool in memory. */
const junk = fc
  .oneof(
    fc.string({ maxLength: 20 }),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.constantFrom('', '-', '--', '=', '\0', ' ')
  )
  .filter(word => !/[./\\~]|sqlite|postgres/i.test(word))

const commands = fc.constantFrom(
  'put',
  'get',
  'stat',
  'ls',
  'rm',
  'sweep',
  'maintain',
  'verify',
  'why',
  'usage',
  'swep',
  'help'
)
const flags = fc.constantFrom(
  ...[
    '--json',
    '--quiet',
    '--help',
    '--version',
    '--yes',
    '-y',
    '--dry-run',
    '-n',
    '--repair',
    '--verify',
    '--allow-empty'
  ],
  ...['--force', '-f', '--nothing', '-x', '-h', '--', '--json=1', '--jsn', '-yn']
)
const names = [
  '--store',
  '--range',
  '-r',
  '--after',
  '--window-delay-ms',
  '--live',
  '--live-sql',
  '--output',
  '-o',
  '--nothing'
]
const values = fc.constantFrom('mem:', '0', '-1', '1e9', 'NaN', '0-9', '-5', KEY, KEY.slice(1), 'ab', '-')
const valued = fc.tuple(fc.constantFrom(...names), fc.oneof(values, junk))
const words = fc.oneof(
  { weight: 2, arbitrary: flags.map(flag => [flag]) },
  { weight: 3, arbitrary: valued },
  { weight: 1, arbitrary: valued.map(([name, value]) => [`${name}=${value}`]) },
  { weight: 2, arbitrary: fc.constantFrom([KEY], [KEY.toUpperCase()], ['-']) },
  { weight: 2, arbitrary: junk.map(word => [word]) }
)
const lines = fc
  .tuple(fc.boolean(), fc.array(words, { maxLength: 2 }), commands, fc.array(words, { maxLength: 4 }))
  .map(([hasStore, before, command, after]) => [
    ...(hasStore ? ['--store', 'mem:'] : []),
    ...before.flat(),
    command,
    ...after.flat()
  ])

// Never unset: the store of those who name none is a folder.
const environment = fc.constantFrom('mem:', 'mem:', 'mem:nothing', 'mysql://host/db')

test('any command line ends with an exit code, and with words where it is not 0', async () => {
  const codes = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(lines, fc.uint8Array({ maxLength: 40 }), environment, async (line, input, store) => {
      const { code, stderr } = await ran(line, input, { ALKBLOBS_STORE: store })
      codes.set(code, (codes.get(code) ?? 0) + 1)
      expect(Object.values(EXIT)).toContain(code)
      if (code === EXIT.usage || code === EXIT.failed) expect(stderr).not.toBe('')
      // A stack is for a bug report; who mistyped gets a sentence.
      expect(stderr).not.toMatch(/^ {4}at /m)
    }),
    { numRuns: 300 }
  )
  // Lines that are understood are among them, and lines that are not.
  expect([...codes.keys()]).toEqual(expect.arrayContaining([EXIT.ok, EXIT.usage]))
}, 60_000)

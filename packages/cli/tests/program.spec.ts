/** Command lines that go wrong, and the help: run in this process, on a pool in memory. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { CommandError, EXIT, Interruption } from '../src/exit-codes.js'
import { openPool } from '../src/pool.js'
import { run } from '../src/program.js'
import { parseStoreUrl } from '../src/store-url.js'

const KEY = `blake3:${'0'.repeat(64)}`

async function ran(args: readonly string[], { input = '', env = {} as Record<string, string> } = {}) {
  const controller = new AbortController()
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const [out, err] = [text(stdout), text(stderr)]
  stdin.end(input)
  const interrupt = () => controller.abort(new Interruption('SIGINT'))
  const code = await run(args, { stdin, stdout, stderr, env, signal: controller.signal, interrupt })
  stdout.end()
  stderr.end()
  return { code, stdout: await out, stderr: await err }
}

const COMMANDS = ['put', 'get', 'stat', 'ls', 'rm', 'sweep', 'maintain', 'verify', 'why', 'usage', 'settings', 'fork']

test('every command has a help with examples and the global options', async () => {
  const { code, stdout } = await ran(['--help'])
  expect(code).toBe(EXIT.ok)
  for (const command of COMMANDS) {
    expect(stdout).toContain(`  ${command} `)
    const help = await ran([command, '--help'])
    expect(help.code).toBe(EXIT.ok)
    expect(help.stdout).toMatch(/Examples:\n {2}\$ |--store <url>/)
    expect(help.stdout).toContain('--json')
    expect(help.stdout).toContain('Examples:')
  }
  for (const exitCode of [0, 1, 2, 3, 4, 130]) expect(stdout).toMatch(new RegExp(`^ {2}${exitCode} `, 'm'))
})

test('the version is the one of the package', async () => {
  expect(await ran(['--version'])).toMatchObject({ code: EXIT.ok, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
})

test('a misspelt command or option is answered with the one that was meant', async () => {
  expect(await ran(['swep'])).toMatchObject({
    code: EXIT.usage,
    stdout: '',
    stderr: expect.stringContaining('Did you mean sweep?')
  })
  expect(await ran(['ls', '--jsn'])).toMatchObject({
    code: EXIT.usage,
    stderr: expect.stringContaining('Did you mean --json?')
  })
})

test.each([
  { args: ['get'], says: "missing required argument 'key'" },
  { args: ['sweep', '--yes'], says: '--live' },
  { args: ['--store', 'mem:', 'get', 'nonsense'], says: '"nonsense" is not a blob key: expected "blake3:"' },
  { args: ['--store', 'mem:', 'stat', KEY, KEY.slice(7)], says: `its algorithm is missing, as in ${KEY}` },
  { args: ['--store', 'mem:', 'rm', '--yes', KEY, KEY.toUpperCase()], says: 'its letters are lower-case' },
  { args: ['--store', 'mem:', 'why', 'a\u001bb'], says: 'is not a blob key' },
  { args: ['--store', 'mem:', 'get', KEY, '--range', '5-2'], says: 'ends before it starts' },
  { args: ['--store', 'pool', 'ls'], says: 'sqlite:<folder>' },
  { args: ['--store', 'sqlite:~/pool', 'ls'], says: '$HOME' },
  { args: ['--store', 'ftp://somewhere', 'ls'], says: 'no store is called "ftp:"' },
  { args: ['--window-delay-ms', 'soon', 'ls'], says: 'milliseconds' },
  { args: ['--store', 'mem:', 'put', '-', '-'], says: 'only once' },
  { args: ['--store', 'mem:', 'rm', KEY], says: '--yes' }
])('$args is a usage error in one line', async ({ args, says }) => {
  const { code, stdout, stderr } = await ran(args)
  expect({ code, stdout }).toEqual({ code: EXIT.usage, stdout: '' })
  expect(stderr).toContain(says)
  expect(stderr).not.toMatch(/\n\s+at /)
  expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
})

test('the store may come from the environment, and the option goes before it', async () => {
  const env = { ALKBLOBS_STORE: 'mem:' }
  expect(await ran(['put', '--json', '-'], { input: 'x', env })).toMatchObject({ code: EXIT.ok })
  expect(await ran(['ls', '--store', 'nothing'], { env })).toMatchObject({ code: EXIT.usage })
})

test('an engine that is not installed is answered with the line that installs it', async () => {
  const missing = async () => {
    throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
  }
  const opened = openPool(
    parseStoreUrl('sqlite:pool'),
    {},
    {
      mem: missing,
      sqlite: missing,
      local: missing,
      postgres: missing,
      pglo: missing
    }
  )
  await expect(opened).rejects.toThrow('npm install @alkblobs/engine-sqlite')
  await expect(opened).rejects.toBeInstanceOf(CommandError)
})

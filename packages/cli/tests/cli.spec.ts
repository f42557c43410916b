/** The built bin on a real pool in a real folder. */
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openStore } from '@alkblobs/core'
import { sqlite } from '@alkblobs/engine-sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bin, jsonLines, startBin } from './bin.js'

interface Stored {
  readonly key: string
  readonly length: number
  readonly created: boolean
  readonly path: string
}

let cwd: string
const large = Buffer.alloc(400_000, 'large ')

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'alkblobs-cli-'))
  mkdirSync(join(cwd, 'site', 'deep'), { recursive: true })
  writeFileSync(join(cwd, 'site', 'a.txt'), 'small')
  writeFileSync(join(cwd, 'site', 'deep', 'b.txt'), 'small')
  writeFileSync(join(cwd, 'site', 'empty'), '')
  writeFileSync(join(cwd, 'site', 'z.bin'), large)
})

afterEach(() => rmSync(cwd, { recursive: true, force: true }))

const putAll = async (...more: string[]) =>
  jsonLines<Stored>((await bin(['put', '--json', ...more, 'site'], { cwd })).stdout)
const filesUnder = (folder: string): string[] =>
  existsSync(join(cwd, folder))
    ? readdirSync(join(cwd, folder), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name))
    : []
/** The bodies in the large tier: the only files there of that length. */
const bodies = () => filesUnder('.alkblobs/large').filter(file => readFileSync(file).length >= large.length)

test('a folder is put in order, one entry for equal files, and put again it exists', async () => {
  const first = await bin(['put', 'site'], { cwd })
  expect(first).toMatchObject({ code: 0 })
  const lines = first.stdout.trimEnd().split('\n')
  expect(lines.map(line => line.split(/\s+/)[3])).toEqual(['site/a.txt', 'site/deep/b.txt', 'site/empty', 'site/z.bin'])
  expect(first.stderr).toContain('4 files, 400 kB: 3 created, 1 existed')

  const again = await putAll()
  expect(again.map(({ created }) => created)).toEqual([false, false, false, false])
  expect(new Set(again.map(({ key }) => key)).size).toBe(3)
})

test('many large files at once are put without a word beside the results', async () => {
  for (let index = 0; index < 40; index++)
    writeFileSync(join(cwd, 'site', `large-${index}`), Buffer.alloc(200_000, `${index} `))
  const { code, stderr } = await bin(['put', 'site'], { cwd })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '44 files, 8.4 MB: 43 created, 1 existed\n' })
})

test('stdin goes in, and comes out byte for byte, whole, ranged and into a file', async () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 256))
  const [stored] = jsonLines<Stored>((await bin(['put', '--json', '-'], { cwd, input: content })).stdout)
  const key = stored?.key ?? ''
  expect(stored).toMatchObject({ length: content.length, created: true, path: '-' })

  expect(await bin(['get', key, '-o', 'out.bin'], { cwd })).toMatchObject({ code: 0 })
  expect(readFileSync(join(cwd, 'out.bin')).equals(content)).toBe(true)
  for (const [range, start, end] of [
    ['0-0', 0, 1],
    ['10-19', 10, 20],
    ['299990-', 299_990, 300_000],
    ['-5', 299_995, 300_000],
    ['299999-400000', 299_999, 300_000]
  ] as const) {
    const file = `part-${range}`
    expect(await bin(['get', key, '--range', range, '-o', file], { cwd })).toMatchObject({ code: 0 })
    expect(readFileSync(join(cwd, file)).equals(content.subarray(start, end))).toBe(true)
  }
  const text = await bin(['put', '--json', '-'], { cwd, input: 'to be\nor not' })
  const shown = await bin(['get', jsonLines<Stored>(text.stdout)[0]?.key ?? ''], { cwd })
  expect(shown).toEqual({ code: 0, stdout: 'to be\nor not', stderr: '' })
  expect(await bin(['get', key, '--range', '300000-'], { cwd })).toMatchObject({ code: 1, stdout: '' })
})

test('get replaces a file only when told to, and leaves no partial one', async () => {
  const [stored] = await putAll()
  const key = stored?.key ?? ''
  writeFileSync(join(cwd, 'kept'), 'mine')
  expect(await bin(['get', key, '-o', 'kept'], { cwd })).toMatchObject({ code: 1 })
  expect(readFileSync(join(cwd, 'kept'), 'utf8')).toBe('mine')
  expect(await bin(['get', key, '-o', 'kept', '--force'], { cwd })).toMatchObject({ code: 0 })
  expect(readFileSync(join(cwd, 'kept'), 'utf8')).toBe('small')
  expect(await bin(['get', key, '-o', 'no/such/folder'], { cwd })).toMatchObject({ code: 1 })
  expect(readdirSync(cwd).sort()).toEqual(['.alkblobs', 'kept', 'site'])
})

test('ls, stat, usage and why answer in JSON lines, in key order', async () => {
  const stored = await putAll()
  const listed = jsonLines<Stored>((await bin(['ls', '--json'], { cwd })).stdout)
  expect(listed.map(({ key }) => key)).toEqual([...new Set(stored.map(({ key }) => key))].sort())
  const behind = jsonLines<Stored>((await bin(['ls', '--json', '--after', listed[0]?.key ?? ''], { cwd })).stdout)
  expect(behind).toEqual(listed.slice(1))

  const key = stored[3]?.key ?? ''
  const stat = await bin(['stat', '--json', key], { cwd })
  expect(jsonLines(stat.stdout)).toEqual([{ key, length: large.length, algorithm: 'blake3', tier: 'large' }])
  const usage = await bin(['--json', 'usage'], { cwd })
  expect(jsonLines(usage.stdout)).toMatchObject([
    { entries: 3, bytes: large.length + 5, perTier: { large: { entries: 1 } } }
  ])
  const why = await bin(['why', '--json', key], { cwd })
  expect(jsonLines(why.stdout)).toMatchObject([{ key, entry: { tier: 'large' } }])
})

test('reading a pool that is not there says so and creates nothing', async () => {
  const key = `blake3:${'0'.repeat(64)}`
  for (const [args, code] of [
    [['ls'], 0],
    [['usage'], 0],
    [['verify'], 0],
    [['stat', key], 3],
    [['get', key], 3],
    [['why', key], 3],
    [['rm', '--yes', key], 3]
  ] as const) {
    expect({ args, ...(await bin(args, { cwd })) }).toMatchObject({ args, code })
  }
  expect((await bin(['ls'], { cwd })).stderr).toContain('no pool')
  expect(readdirSync(cwd)).toEqual(['site'])
})

test('rm asks, and without a terminal wants --yes', async () => {
  const stored = await putAll()
  const key = stored[0]?.key ?? ''
  expect(await bin(['rm', key], { cwd })).toMatchObject({ code: 2, stdout: '' })
  expect(await bin(['stat', key], { cwd })).toMatchObject({ code: 0 })
  expect(await bin(['rm', '--yes', key], { cwd })).toMatchObject({ code: 0, stdout: `${key}  removed\n` })
  expect(await bin(['rm', '--yes', key], { cwd })).toMatchObject({ code: 3 })
  expect(await bin(['rm', '--yes', 'blake3:abc'], { cwd })).toMatchObject({ code: 2 })
})

test('what no list names is staged by one sweep and removed by the next', async () => {
  const stored = await putAll('--window-delay-ms', '0')
  const live = stored[3]?.key ?? ''
  writeFileSync(join(cwd, 'live'), `# the big one\n\n${live}\n`)
  expect(await bin(['sweep', '--live', 'live'], { cwd })).toMatchObject({ code: 2 })

  const dry = await bin(['sweep', '--live', 'live', '--dry-run', '--json'], { cwd })
  expect(jsonLines(dry.stdout)).toMatchObject([{ dryRun: true, scanned: 3, live: 1, candidatesStaged: 2, deleted: 0 }])
  const first = await bin(['sweep', '--live', 'live', '--yes', '--json'], { cwd })
  expect(jsonLines(first.stdout)).toMatchObject([{ scanned: 3, live: 1, candidatesStaged: 2, deleted: 0 }])
  const second = await bin(['sweep', '--live', '-', '--yes', '--json'], { cwd, input: live })
  expect(jsonLines(second.stdout)).toMatchObject([{ deleted: 2, cancelledByArbitration: 0 }])
  expect(jsonLines((await bin(['ls', '--json'], { cwd })).stdout)).toMatchObject([{ key: live }])
})

test('the window delay protects what was just put, and the sweep says how long', async () => {
  await putAll()
  const sweep = () => bin(['sweep', '--live', '-', '--yes', '--allow-empty'], { cwd })
  expect(await sweep()).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('staged 3 now; they can be removed by a sweep after 1 h')
  })
  expect(await sweep()).toMatchObject({ code: 0, stdout: expect.stringContaining('removed 0 entries') })
  expect(jsonLines((await bin(['ls', '--json'], { cwd })).stdout)).toHaveLength(3)
})

test('a sweep tells the delay of the pool it works on, for people and machines', async () => {
  await putAll('--window-delay-ms', '90000')
  const sweep = (...more: string[]) => bin(['sweep', '--live', '-', '--allow-empty', ...more], { cwd })
  expect((await sweep('--dry-run')).stdout).toContain(
    'would stage 3 entries, to be removed by a sweep after 1 min 30 s'
  )
  expect(jsonLines((await sweep('--dry-run', '--json')).stdout)).toMatchObject([{ windowDelayMs: 90_000 }])
  expect((await sweep('--yes')).stdout).toContain('they can be removed by a sweep after 1 min 30 s')
  const other = await bin(['--store', 'sqlite:other', '--window-delay-ms', '0', 'put', 'site/a.txt'], { cwd })
  expect(other).toMatchObject({ code: 0 })
  const atOnce = await bin(['--store', 'sqlite:other', 'sweep', '--live', '-', '--allow-empty', '--yes'], { cwd })
  expect(atOnce.stdout).toContain('staged 1 now; they can be removed by a sweep after this one')
})

test('a pool that must not be used is refused in one line that says what to do on the command line', async () => {
  await putAll()
  const ls = async (...args: string[]) => await bin([...args, 'ls'], { cwd })
  expect(await ls('--window-delay-ms', '5')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /3600000 ms, not 5 ms; .*leave --window-delay-ms out, or .*settings --window-delay`\n$/
    )
  })
  const derived = await openStore({ kv: sqlite({ file: join(cwd, 'other', 'kv.db') }), derivation: 'sha256' })
  await derived.put('x')
  await derived.close()
  expect(await ls('--store', 'sqlite:other')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/sha256; this command works on pools of blake3 only.*\n$/)
  })
  mkdirSync(join(cwd, 'text'))
  writeFileSync(
    join(cwd, 'text', 'kv.db'),
    'no database, but long enough to be taken for one by a hasty reader'.repeat(20)
  )
  expect(await ls('--store', 'sqlite:text')).toMatchObject({ code: 1, stderr: expect.stringContaining('--store') })
  renameSync(join(cwd, '.alkblobs', 'large'), join(cwd, 'away'))
  const away = await ls()
  expect(away).toMatchObject({ code: 1, stderr: expect.stringMatching(/is the folder mounted.*--store/) })
  for (const { stderr } of [away, await ls('--store', 'sqlite:other')]) {
    expect(stderr).not.toMatch(/\n\s+at |\{ derivation|configure/)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  }
})

test('settings are shown, and changed only when somebody says so', async () => {
  expect(await bin(['settings'], { cwd })).toMatchObject({ code: 0, stdout: 'window delay 3600000 ms\n' })
  expect(existsSync(join(cwd, '.alkblobs'))).toBe(false)
  await putAll('--window-delay-ms', '0')
  const change = (...more: string[]) => bin(['settings', '--json', '--window-delay', '86400000', ...more], { cwd })
  expect(await change()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--yes') })
  expect(jsonLines((await bin(['settings', '--json'], { cwd })).stdout)).toEqual([{ windowDelayMs: 0 }])
  const changed = await change('--yes')
  expect(changed).toMatchObject({ code: 0, stderr: expect.stringMatching(/window delay 0 ms, then 86400000 ms/) })
  expect(jsonLines(changed.stdout)).toEqual([{ windowDelayMs: 86_400_000 }])
  expect(jsonLines((await bin(['settings', '--json'], { cwd })).stdout)).toEqual([{ windowDelayMs: 86_400_000 }])
  for (const wrong of ['-1', 'a day', '1.5']) {
    expect(await bin(['settings', '--yes', '--window-delay', wrong], { cwd })).toMatchObject({ code: 2 })
  }
  expect(await bin(['settings', '--acknowledge-move'], { cwd })).toMatchObject({ code: 2 })
  expect(await bin(['settings', '--acknowledge-move', '--yes'], { cwd })).toMatchObject({ code: 0 })
})

test('a copied folder becomes a pool of its own, and frees nothing of its original', async () => {
  const stored = await putAll('--window-delay-ms', '0')
  cpSync(join(cwd, '.alkblobs'), join(cwd, 'copy'), { recursive: true })
  const fork = (...more: string[]) => bin(['--store', 'sqlite:copy', 'fork', '--json', ...more], { cwd })
  expect(await fork('--bodies-copied')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
  expect(await fork('--yes')).toMatchObject({ code: 2, stderr: expect.stringContaining('say --bodies-copied') })
  const forked = await fork('--yes', '--bodies-copied')
  expect(forked.code).toBe(0)
  const [{ poolId } = { poolId: '' }] = jsonLines<{ poolId: string }>(forked.stdout)
  expect(poolId).toMatch(/^[0-9a-f]{32}$/)
  const claimOf = (folder: string) => readFileSync(join(cwd, folder, 'large', 'alkblobs.json'), 'utf8')
  expect(claimOf('copy')).toContain(poolId)
  expect(claimOf('.alkblobs')).not.toContain(poolId)
  for (const { key } of stored) await bin(['--store', 'sqlite:copy', 'rm', '--yes', key], { cwd })
  expect(await bin(['verify'], { cwd })).toMatchObject({ code: 0 })
  expect(await bin(['--store', 'sqlite:nowhere', 'fork', '--yes'], { cwd })).toMatchObject({ code: 1 })
})

test('a bad or empty live list ends the sweep before it begins', async () => {
  const stored = await putAll('--window-delay-ms', '0')
  const input = `${stored[0]?.key}\n\nblake3:typo\n`
  const bad = await bin(['sweep', '--live', '-', '--yes'], { cwd, input })
  expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining('line 3') })
  const empty = await bin(['sweep', '--live', '-', '--yes'], { cwd, input: '# nothing\n' })
  expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('--allow-empty') })
  expect(await bin(['sweep', '--live', 'nowhere', '--yes'], { cwd })).toMatchObject({ code: 2 })
  expect(jsonLines<{ window: number }>((await bin(['usage', '--json'], { cwd })).stdout)[0]?.window).toBe(0)
})

test('a flipped byte in a large file is found by verify and by get', async () => {
  const stored = await putAll()
  const key = stored[3]?.key ?? ''
  expect(await bin(['verify'], { cwd })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('all as they should be')
  })
  const [body] = bodies()
  if (body === undefined) throw new Error('no body in the large tier')
  const content = readFileSync(body)
  const middle = content.length >> 1
  content[middle] = (content[middle] ?? 0) ^ 1
  rmSync(body)
  writeFileSync(body, content)

  const verify = await bin(['verify', '--json'], { cwd })
  expect(verify.code).toBe(1)
  expect(jsonLines(verify.stdout)).toContainEqual(expect.objectContaining({ kind: 'corrupt', key }))
  const get = await bin(['get', key, '-o', 'out'], { cwd })
  expect(get).toMatchObject({ code: 1, stderr: expect.stringContaining('damaged') })
  expect(get.stderr).not.toMatch(/\n\s+at /)
  expect(readdirSync(cwd).sort()).toEqual(['.alkblobs', 'site'])
})

test('maintain reclaims without asking', async () => {
  await putAll()
  expect(await bin(['maintain'], { cwd })).toMatchObject({ code: 0 })
  expect(jsonLines((await bin(['maintain', '--json'], { cwd })).stdout)).toHaveLength(1)
})

test('links, missing files and the pool itself are reported, and the others go on', async () => {
  symlinkSync('a.txt', join(cwd, 'site', 'link'))
  const links = await bin(['put', 'site'], { cwd })
  expect(links).toMatchObject({ code: 0, stderr: expect.stringContaining('skipped site/link: a symbolic link') })

  const missing = await bin(['put', 'nowhere', 'site/a.txt', 'site/link'], { cwd })
  expect(missing).toMatchObject({ code: 1, stdout: expect.stringContaining('site/a.txt') })
  expect(missing.stderr).toContain('nowhere: no such file or folder')

  const itself = await bin(['put', '.'], { cwd })
  expect(itself).toMatchObject({ code: 0, stderr: expect.stringContaining('skipped ./.alkblobs: the pool itself') })
  expect(itself.stdout).not.toContain('kv.db')
})

test('a file that grows while it is read is not kept, and the others go on', async () => {
  const growing = join(cwd, 'site', 'growing')
  writeFileSync(growing, Buffer.alloc(64 * 1024 * 1024))
  const timer = setInterval(() => appendFileSync(growing, 'more'), 1)
  try {
    const result = await bin(['put', '--json', 'site'], { cwd })
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('changed while it was being read') })
    expect(jsonLines<Stored>(result.stdout).filter(each => each.key !== undefined)).toHaveLength(4)
  } finally {
    clearInterval(timer)
  }
  expect(
    jsonLines<{ stages: number; entries: number }>((await bin(['usage', '--json'], { cwd })).stdout)[0]
  ).toMatchObject({ stages: 0, entries: 3 })
})

test('a reader that goes away is no failure', async () => {
  for (let index = 0; index < 200; index++) writeFileSync(join(cwd, 'site', `file-${index}`), `content ${index}`)
  await putAll()
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
  const shell = (command: string) =>
    new Promise<{ code: number | null; output: string }>(resolve => {
      const child = spawn('bash', ['-c', `set -o pipefail; ${command}`], {
        cwd,
        env: { ...process.env, NODE: process.execPath, MAIN: main }
      })
      let output = ''
      child.stdout.on('data', chunk => (output += chunk))
      child.stderr.on('data', chunk => (output += chunk))
      child.once('close', code => resolve({ code, output }))
    })
  const listed = await shell('"$NODE" "$MAIN" ls | head -1')
  expect(listed.code).toBe(0)
  expect(listed.output).toMatch(/^blake3:[0-9a-f]{64} +\d+\n$/)
  const put = await shell('"$NODE" "$MAIN" put site | head -1')
  expect(put.code).toBe(0)
  expect(put.output).toContain('0 created, 204 existed')
})

test('Ctrl-C during a put from a stalled stdin cancels it, leaves no stage and exits with 130', async () => {
  await putAll()
  const before = bodies().length
  const { child, ended } = startBin(['put', '-'], { cwd })
  child.stdin?.write(Buffer.alloc(1_000_000, 'x'))
  for (let tries = 0; tries < 200; tries++) {
    const [usage] = jsonLines<{ stages: number }>((await bin(['usage', '--json'], { cwd })).stdout)
    if (usage?.stages === 1) break
    await sleep(25)
  }
  child.kill('SIGINT')
  expect(await ended).toEqual({ code: 130, stdout: '', stderr: 'interrupted\n' })
  const [usage] = jsonLines((await bin(['usage', '--json'], { cwd })).stdout)
  expect(usage).toMatchObject({ entries: 3, stages: 0, pins: 0, trash: 0 })
  expect(bodies()).toHaveLength(before)
  expect(await bin(['verify'], { cwd })).toMatchObject({ code: 0 })
})

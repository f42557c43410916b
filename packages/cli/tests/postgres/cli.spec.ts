/** The built bin on pools in a real database. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyDatabase, freshDatabase, noServer, type TestDatabase } from '@alkblobs/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bin, jsonLines, startBin } from '../bin.js'

interface Stored {
  readonly key: string
  readonly path: string
}

describe.skipIf(noServer() !== undefined)('a pool in PostgreSQL', () => {
  let cwd: string
  let database: TestDatabase
  const run = (store: string, args: readonly string[], input = '') =>
    bin(['--window-delay-ms', '0', '--store', store, ...args], { cwd, input })

  beforeEach(async () => {
    cwd = mkdtempSync(join(tmpdir(), 'alkblobs-cli-'))
    writeFileSync(join(cwd, 'small'), 'small')
    writeFileSync(join(cwd, 'large'), Buffer.alloc(400_000, 'large '))
    database = await freshDatabase()
  })

  afterEach(async () => {
    await database.drop()
    rmSync(cwd, { recursive: true, force: true })
  })

  const put = async (store: string): Promise<readonly [string, string]> => {
    const { stdout } = await run(store, ['put', '--json', 'small', 'large'])
    const [small, large] = jsonLines<Stored>(stdout).map(({ key }) => key)
    return [small ?? '', large ?? '']
  }

  test.each([
    ['large objects', '?large=pglo'],
    ['files', '?schema=media&root=bodies'],
    ['large objects of a named schema', '?schema=Media%20Library&large=pglo']
  ])('keeps small blobs in its schema and large ones as %s', async (_, options) => {
    const store = `${database.url}${options}`
    const keys = await put(store)
    const stat = await run(store, ['stat', '--json', ...keys])
    expect(jsonLines(stat.stdout)).toMatchObject([{ tier: 'kv' }, { tier: 'large' }])
    const got = await run(store, ['get', keys[1], '-o', 'again'])
    expect(got).toMatchObject({ code: 0 })
    const [{ objects } = { objects: -1 }] = await database.query<{ objects: number }>(
      'SELECT count(*)::int AS objects FROM pg_largeobject_metadata'
    )
    expect(objects).toBe(options.includes('pglo') ? 1 : 0)
    expect(existsSync(join(cwd, 'bodies'))).toBe(options.includes('root'))
    expect(await run(store, ['verify'])).toMatchObject({ code: 0 })
  })

  test('takes small blobs alone where nothing says where large ones go', async () => {
    expect(await run(database.url, ['put', 'small'])).toMatchObject({ code: 0 })
    expect(await run(database.url, ['put', 'large'])).toMatchObject({ code: 1 })
  })

  test('is swept by a column of the database', async () => {
    const store = `${database.url}?large=pglo`
    const [small, large] = await put(store)
    await database.query(`CREATE SCHEMA app; CREATE TABLE app."Files" (id int, "blob.key" text)`)
    const sweep = (...more: string[]) => run(store, ['sweep', '--live-sql', 'app."Files"."blob.key"', ...more])
    expect(await sweep('--yes')).toMatchObject({ code: 2, stderr: expect.stringContaining('--allow-empty') })
    await database.query('INSERT INTO app."Files" VALUES (1, $1)', [large])
    expect(await sweep('--dry-run')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 protected') })
    expect(await sweep('--yes', '--json')).toMatchObject({ code: 0 })
    const [second] = jsonLines((await sweep('--yes', '--json')).stdout)
    expect(second).toMatchObject({ live: 1, deleted: 1 })
    expect((await run(store, ['stat', small, large])).code).toBe(3)
    expect(await run(store, ['stat', large])).toMatchObject({ code: 0 })
  })

  test('is not swept by a column that is not there, or without any source', async () => {
    const store = `${database.url}?large=pglo`
    await put(store)
    const missing = await run(store, ['sweep', '--yes', '--live-sql', 'app.files.key'])
    expect(missing.code).toBeGreaterThan(0)
    expect(missing.stderr).toContain('app.files')
    expect(await run(store, ['sweep', '--yes'])).toMatchObject({ code: 2 })
    const elsewhere = await run('sqlite:pool', ['sweep', '--yes', '--live-sql', 'files.key'])
    expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining('sqlite') })
  })

  /** Sessions of the command that wait in the middle of a body for more of it. */
  const writing = async () =>
    await database.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
         AND application_name <> 'alkblobs-testkit' AND state = 'idle in transaction' AND query LIKE 'COPY%lo_put%'`
    )
  const left = async () =>
    (
      await database.query(`SELECT (SELECT count(*)::int FROM pg_largeobject_metadata) AS objects,
        (SELECT count(*)::int FROM alkblobs.stages) AS stages, (SELECT count(*)::int FROM alkblobs.entries) AS entries`)
    )[0]

  test.each([
    ['is interrupted', { code: 130, stdout: '', stderr: 'interrupted\n' }],
    ['loses its session', { code: 1, stdout: '', stderr: expect.stringContaining('try again') }]
  ])('keeps nothing of an upload that %s', async (what, ended) => {
    const store = `${database.url}?large=pglo`
    const upload = startBin(['--store', store, 'put', '-'], { cwd })
    upload.child.stdin?.write(Buffer.alloc(3_000_000, 'upload '))
    await expect.poll(async () => (await writing()).length, { timeout: 10_000 }).toBe(1)
    if (what === 'is interrupted') upload.child.kill('SIGINT')
    else {
      await database.query('SELECT pg_terminate_backend($1, 5000)', [(await writing())[0]?.pid ?? 0])
      upload.child.stdin?.end(Buffer.alloc(3_000_000, 'upload '))
    }
    expect(await upload.ended).toEqual(ended)
    expect(await left()).toEqual({ objects: 0, stages: 0, entries: 0 })
  })

  test('found in another database is swept only after somebody said what it is', async () => {
    const [, large] = await put(`${database.url}?large=pglo`)
    const list = join(cwd, 'live')
    writeFileSync(list, `${large}\n`)
    for (const way of [
      ['settings', '--acknowledge-move', '--yes'],
      ['fork', '--bodies-copied', '--yes']
    ]) {
      const copy = await copyDatabase(database)
      try {
        const store = `${copy.url}?large=pglo`
        const sweep = () => run(store, ['sweep', '--yes', '--live', list])
        const refused = await sweep()
        expect(refused).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/may be a copy; .*--acknowledge-move.*fork/)
        })
        expect(refused.stderr.trimEnd().split('\n')).toHaveLength(1)
        expect(await run(store, way)).toMatchObject({ code: 0 })
        expect(await sweep()).toMatchObject({ code: 0 })
      } finally {
        await copy.drop()
      }
    }
    expect(await run(`${database.url}?large=pglo`, ['verify'])).toMatchObject({ code: 0 })
  })

  test('is never shown with its password', async () => {
    const wrong = new URL(database.url)
    wrong.username = 'nobody_of_this_name'
    wrong.password = 'hunter2'
    wrong.port = '1'
    const { code, stdout, stderr } = await bin(['--store', wrong.href, 'ls'], { cwd, env: { ALKBLOBS_DEBUG: '1' } })
    expect(code).toBe(1)
    expect(`${stdout}${stderr}`).not.toContain('hunter2')
  })
})

/** Media that fail: full, read-only, in the wrong place, gone. Typed errors, nothing left behind, and the store works again after. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { describe, expect, it } from 'vitest'
import { atEnd, failureOf, mediumOf, opened, temporaryFolder } from './stores.js'

const isRoot = process.geteuid?.() === 0
const NOBODY = 65_534
const worker = fileURLToPath(new URL('medium-worker.mjs', import.meta.url))
const large = (seed = 1) => new Uint8Array(200_000).fill(seed)

interface Outcome {
  readonly name: string
  readonly ok?: boolean
  readonly code?: string
  readonly kind?: string
  readonly message?: string
  readonly entries?: number
  readonly stages?: number
}

interface Limits {
  /** Longest file the process may write, in KiB. */
  readonly fileKib?: number
  /** Whether to run as a user without rights, where this process may choose. */
  readonly asNobody?: boolean
}

async function inChild(given: object, { fileKib, asNobody = false }: Limits): Promise<Outcome[]> {
  const script = `${fileKib === undefined ? '' : `ulimit -f ${fileKib} && `}exec "$0" "$1" "$2"`
  const user = asNobody && isRoot ? { uid: NOBODY, gid: NOBODY } : {}
  const child = spawn('bash', ['-c', script, process.execPath, worker, JSON.stringify(given)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...user
  })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return JSON.parse(output)
}

function named(outcomes: readonly Outcome[], name: string): Outcome {
  const found = outcomes.find(outcome => outcome.name === name)
  if (found === undefined) throw new Error(`the worker said nothing of ${name}: ${JSON.stringify(outcomes)}`)
  return found
}

/** Names of bodies and half-written bodies below a root. */
function bodiesBelow(root: string): string[] {
  return Object.entries(mediumOf(root))
    .filter(([path, kind]) => kind !== 'folder' && /^(stage|[0-9a-f]{2})\//.test(path))
    .map(([path]) => path)
}

describe('a full medium', () => {
  it('by a bound on files fails large puts as full, keeps nothing of them, and takes small ones', async () => {
    for (const isDurable of [false, true]) {
      const folder = temporaryFolder()
      const root = join(folder, 'large')
      const outcomes = await inChild({ root, ...(isDurable && { file: join(folder, 'pool.db') }) }, { fileKib: 1_000 })
      for (const name of ['put large', 'put stream']) {
        expect(named(outcomes, name)).toMatchObject({
          code: 'ERR_BLOB_ENGINE',
          kind: 'full',
          message: expect.stringMatching(/space/)
        })
      }
      for (const name of ['put small', 'usage', 'close'])
        expect(named(outcomes, name), name).toMatchObject({ ok: true })
      expect(named(outcomes, 'left')).toMatchObject({ entries: 1, stages: 0 })
      expect(bodiesBelow(root)).toEqual([])
    }
  })

  it.runIf(isRoot)('fails what does not fit, keeps nothing of it, and takes it once there is room', async () => {
    for (const isDurable of [false, true]) {
      const folder = temporaryFolder()
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs', folder])
      atEnd(() => execFileSync('umount', ['--lazy', folder]))
      const root = join(folder, 'large')
      const kv = isDurable ? sqlite({ file: join(folder, 'pool.db') }) : mem()
      const store = await opened({ kv, large: local({ root }), threshold: 100_000 })
      const first = await store.put(large())
      const big = new Uint8Array(8_000_000).fill(9)
      const stream = async function* () {
        for (let at = 0; at < big.length; at += 100_000) yield big.subarray(at, at + 100_000)
      }
      for (const content of [() => big, stream]) {
        const error = await failureOf(() => store.put(content()))
        expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'full', transient: false })
        expect(error).toMatchObject({ cause: { code: expect.stringMatching(/ENOSPC|SQLITE_FULL/) } })
        expect(bodiesBelow(root).length).toBe(1)
        expect(await store.usage()).toMatchObject({ entries: 1, stages: 0 })
      }
      execFileSync('mount', ['-o', 'remount,size=32m', folder])
      const { key } = await store.put(big)
      expect((await (await store.get(key))?.bytes())?.length).toBe(big.length)
      expect((await (await store.get(first.key))?.bytes())?.length).toBe(200_000)
      expect((await store.verify()).clean).toBe(true)
      await store.close()
    }
  })

  it.runIf(isRoot)('of the kv tier fails small puts as full, and poisons nothing that follows', async () => {
    const folder = temporaryFolder()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m,mode=0700', 'tmpfs', folder])
    atEnd(() => execFileSync('umount', ['--lazy', folder]))
    const store = await opened({ kv: sqlite({ file: join(folder, 'pool.db') }), threshold: 1_000_000 })
    const { key } = await store.put('first')
    const big = new Uint8Array(900_000)
    const failures = []
    for (let i = 1; i < 12; i++) failures.push(await failureOf(() => store.put(big.fill(i))))
    const failed = failures.filter(error => error !== undefined)
    expect(failed.length).toBeGreaterThan(0)
    for (const error of failed) expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'full' })
    expect(await (await store.get(key))?.text()).toBe('first')
    expect((await store.usage()).entries).toBe(1 + failures.length - failed.length)
    execFileSync('mount', ['-o', 'remount,size=64m', folder])
    expect((await store.put(big.fill(11))).length).toBe(900_000)
    expect((await store.verify()).clean).toBe(true)
    await store.close()
  })
})

describe('a medium without rights', () => {
  /** A pool of the user that the worker will be. */
  async function poolOfNobody() {
    const folder = temporaryFolder()
    const [file, root] = [join(folder, 'kv', 'pool.db'), join(folder, 'large')]
    const store = await openStore({ kv: sqlite({ file }), large: local({ root }), threshold: 100_000 })
    await store.put('there')
    await store.put(large())
    await store.close()
    if (isRoot)
      for (const path of ['.', ...Object.keys(mediumOf(folder)), 'kv']) chownSync(join(folder, path), NOBODY, NOBODY)
    return { folder, file, root }
  }

  it('to write lets large puts fail as denied, reads on, and leaves nothing', async () => {
    const { file, root } = await poolOfNobody()
    const before = bodiesBelow(root)
    chmodSync(join(root, 'stage'), 0o500)
    atEnd(() => chmodSync(join(root, 'stage'), 0o700))
    const outcomes = await inChild({ file, root, act: 'read' }, { asNobody: true })
    expect(outcomes.filter(({ name }) => name === 'entry').length).toBe(2)
    for (const name of ['put large', 'put stream']) {
      expect(named(outcomes, name)).toMatchObject({
        code: 'ERR_BLOB_ENGINE',
        kind: 'denied',
        message: expect.stringMatching(/permission/)
      })
    }
    for (const name of ['open', 'list', 'put small', 'close'])
      expect(named(outcomes, name), name).toMatchObject({ ok: true })
    expect(named(outcomes, 'left')).toMatchObject({ entries: 3, stages: 0 })
    expect(bodiesBelow(root)).toEqual(before)
  })

  it('to write the file lets every put fail as denied', async () => {
    const { file, root } = await poolOfNobody()
    chmodSync(file, 0o400)
    chmodSync(dirname(file), 0o500)
    atEnd(() => chmodSync(dirname(file), 0o700))
    const outcomes = await inChild({ file, root }, { asNobody: true })
    for (const name of ['put large', 'put stream', 'put small']) {
      const outcome = outcomes.find(one => one.name === name) ?? named(outcomes, 'open')
      expect(outcome, name).toMatchObject({
        code: 'ERR_BLOB_ENGINE',
        kind: 'denied',
        message: expect.stringMatching(/permission/)
      })
    }
  })

  it('to make the folder lets the first put fail as denied, and makes nothing', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'closed'))
    if (isRoot) chownSync(folder, NOBODY, NOBODY)
    if (isRoot) chownSync(join(folder, 'closed'), NOBODY, NOBODY)
    chmodSync(join(folder, 'closed'), 0o500)
    const outcomes = await inChild({ root: join(folder, 'closed', 'large') }, { asNobody: true })
    expect(named(outcomes, 'open')).toMatchObject({ ok: true })
    for (const name of ['put large', 'put stream', 'put small']) {
      expect(named(outcomes, name), name).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'denied' })
    }
    expect(readdirSync(join(folder, 'closed'))).toEqual([])
  })
})

describe('a path that leads elsewhere', () => {
  it.each<[string, (folder: string) => { kv: string; root: string }]>([
    [
      'a file in the place of the root',
      folder => ({ kv: join(folder, 'pool.db'), root: fileAt(join(folder, 'plain')) })
    ],
    [
      'a file above the root',
      folder => ({ kv: join(folder, 'pool.db'), root: join(fileAt(join(folder, 'plain')), 'large') })
    ],
    [
      'a file above the database',
      folder => ({ kv: join(fileAt(join(folder, 'plain')), 'pool.db'), root: join(folder, 'large') })
    ]
  ])('is a typed error at open or at the first put, and changes nothing: %s', async (_, make) => {
    const folder = temporaryFolder()
    const { kv, root } = make(folder)
    const use = async () => {
      const store = await opened({ kv: sqlite({ file: kv }), large: local({ root }), threshold: 100 })
      await store.put(large())
    }
    const error = await failureOf(use)
    expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_BLOB_(ENGINE|POOL_REFUSED)$/) })
    expect((error?.message.length ?? 0) > 20).toBe(true)
    expect(mediumOf(folder).plain).toMatch(/^[0-9a-f]{64}$/)
    expect(bodiesBelow(folder)).toEqual([])
  })

  const fileAt = (path: string) => {
    writeFileSync(path, 'plain')
    return path
  }
})

describe('a medium that goes away', () => {
  async function pool() {
    const folder = temporaryFolder()
    const [file, root] = [join(folder, 'kv', 'pool.db'), join(folder, 'large')]
    const store = await opened({
      kv: sqlite({ file }),
      large: local({ root }),
      threshold: 100,
      trashDelayMs: 0,
      windowDelayMs: 0
    })
    const [small, big] = [await store.put('small'), await store.put(large())]
    await small.release()
    await big.release()
    return { folder, file, root, store, small, big }
  }

  it('with its folder is a transient failure, nothing is called missing, and it works when it is back', async () => {
    const { root, store, big } = await pool()
    renameSync(root, `${root}.away`)
    const transient = { code: 'ERR_BLOB_ENGINE', kind: 'transient', transient: true }
    expect(await failureOf(async () => (await store.get(big.key))?.bytes())).toMatchObject(transient)
    expect(await failureOf(() => store.put(large(2)))).toMatchObject(transient)
    expect(await failureOf(() => store.put(large()))).toMatchObject(transient)
    expect(await failureOf(() => store.verify({ repair: true }))).toMatchObject(transient)
    expect(existsSync(root)).toBe(false)
    expect(await store.stat(big.key)).toMatchObject({ length: 200_000 })
    renameSync(`${root}.away`, root)
    expect((await (await store.get(big.key))?.bytes())?.length).toBe(200_000)
    expect((await store.put(large(2))).created).toBe(true)
    // The drop of what the failed puts had begun is put off, not forgotten.
    expect(await store.usage()).toMatchObject({ stages: 0, entries: 3 })
    expect(bodiesBelow(root).length).toBe(2)
  })

  it('with its folder loses no body to a delete: the drop is tried again', async () => {
    const { root, store, big } = await pool()
    renameSync(root, `${root}.away`)
    expect(await store.delete(big.key)).toBe(true)
    expect(await store.usage()).toMatchObject({ trash: 1 })
    renameSync(`${root}.away`, root)
    expect(bodiesBelow(root).length).toBe(1)
  })

  it('with its file is a transient failure, never an empty pool, and makes no new one', async () => {
    const { file, store, small } = await pool()
    renameSync(dirname(file), `${dirname(file)}.away`)
    const transient = { code: 'ERR_BLOB_ENGINE', kind: 'transient', transient: true }
    for (const call of [
      () => store.get(small.key),
      () => store.has(small.key),
      () => store.usage(),
      () => store.put('new'),
      () => store.put(large(3)),
      () => store.list().next(),
      () => store.delete(small.key),
      () => store.maintain()
    ]) {
      expect(await failureOf(call), call.toString()).toMatchObject(transient)
    }
    expect(existsSync(dirname(file))).toBe(false)
    renameSync(`${dirname(file)}.away`, dirname(file))
    expect(await (await store.get(small.key))?.text()).toBe('small')
    expect(await store.usage()).toMatchObject({ entries: 2, stages: 0 })
  })

  it('for good lets the store be closed', async () => {
    const { folder, store } = await pool()
    rmSync(folder, { recursive: true })
    await failureOf(() => store.put('x'))
    await failureOf(() => store.close())
    expect(await failureOf(() => store.has('x'))).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    expect(existsSync(folder)).toBe(false)
  })
})

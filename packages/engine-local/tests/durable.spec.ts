// What is synced, in which order, and what happens when a sync fails: seen through the file system that the engine is given.
import { rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type StageId, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { type Files, nodeFiles } from '../src/files.js'
import {
  atEnd,
  call,
  claimedRoot,
  filesIn,
  keyOf,
  newStage,
  openDescriptors,
  openRoot,
  putBody,
  shared,
  temporaryFolder
} from './support.js'

const bytes = Buffer.alloc(3 * WINDOW_LENGTH + 5, 7)
const failWith = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))

/** Writes down every step that changes something, with paths relative to the root; `fails` makes one fail. */
function recorder(root: string, fails: (step: string) => string | undefined = () => undefined) {
  const steps: string[] = []
  const name = (path: unknown) => relative(root, String(path)) || '.'
  const step = <Result>(what: string, then: () => Promise<Result>): Promise<Result> => {
    steps.push(what)
    const code = fails(what)
    return code === undefined ? then() : failWith(code)
  }
  const files: Partial<Files> = {
    mkdir: ((path: string, mode: number) =>
      step(`mkdir ${name(path)}`, () => nodeFiles.mkdir(path, mode))) as Files['mkdir'],
    rename: (from, to) => step(`rename ${name(from)} ${name(to)}`, () => nodeFiles.rename(from, to)),
    link: (from, to) => step(`link ${name(to)}`, () => nodeFiles.link(from, to)),
    unlink: path => step(`unlink ${name(path)}`, () => nodeFiles.unlink(path)),
    open: async (path, flags, mode) => {
      const handle = await nodeFiles.open(path, flags, mode)
      const { sync, datasync, close, write } = handle
      handle.sync = () => step(`sync ${name(path)}`, () => sync.call(handle))
      handle.datasync = () => step(`sync ${name(path)}`, () => datasync.call(handle))
      handle.write = ((...given: unknown[]) => {
        steps.push(`write ${name(path)}`)
        return (write as (...given: unknown[]) => unknown).apply(handle, given)
      }) as never
      handle.close = () => {
        if (typeof flags === 'number' && (flags & 3) !== 0) steps.push(`close ${name(path)}`)
        return close.call(handle)
      }
      return handle
    }
  }
  return { steps, files }
}

/** Without what has a random name, and a run of writes as one. */
const told = (steps: string[]) =>
  steps
    .filter(step => !step.includes('.alkblobs.'))
    .filter((step, n, all) => !(step.startsWith('write') && all[n - 1] === step))

describe('the order of steps', () => {
  it('of a claim: every folder that is made is synced into the one above, the claim is whole before it has its name', async () => {
    const parent = await temporaryFolder()
    const root = join(parent, 'a', 'b')
    const { steps, files } = recorder(root)
    const { bodies } = await openRoot(root, files)
    await bodies.claim(shared, call)
    expect(steps.map(step => step.replace(/\.alkblobs\.\w+/, 'TEMPORARY'))).toEqual([
      'mkdir ..',
      'sync ../..',
      'mkdir .',
      'sync ..',
      'sync TEMPORARY',
      'close TEMPORARY',
      'link alkblobs.json',
      'sync .',
      'unlink TEMPORARY',
      'mkdir stage',
      'sync .'
    ])
  })

  it('of a body: bytes, sync, close, folders, rename, sync of the shard, and only then the answer', async () => {
    const root = await temporaryFolder()
    const { steps, files } = recorder(root)
    const { bodies } = await claimedRoot(root, files)
    steps.length = 0
    const stage = 'ab12'.padEnd(32, '0') as StageId
    const locator = await putBody(bodies, [bytes], stage)
    const half = `stage/${stage}`
    const inOrder = told(steps)
    // The syncs of the three folders are under way together.
    expect([...inOrder.slice(0, 6), ...inOrder.slice(6).sort()]).toEqual([
      `write ${half}`,
      `sync ${half}`,
      `close ${half}`,
      'mkdir ab',
      'mkdir ab/12',
      `rename ${half} ab/12/${locator}`,
      'sync .',
      'sync ab',
      'sync ab/12'
    ])
    // The next one finds the folders, and knows them to be durable.
    steps.length = 0
    await putBody(bodies, [bytes], 'ab12'.padEnd(32, '1') as StageId)
    expect(
      told(steps)
        .slice(3)
        .map(step => step.split(' ')[0])
    ).toEqual(['rename', 'sync'])
    // Another store finds them too, but cannot know that.
    const other = recorder(root)
    await putBody((await claimedRoot(root, other.files)).bodies, [bytes], 'ab12'.padEnd(32, '2') as StageId)
    expect(other.steps.filter(step => /^sync (\.|ab)$/.test(step)).sort()).toEqual(['sync .', 'sync ab'])
  })

  it('of a long body: syncing begins before the end', async () => {
    const root = await temporaryFolder()
    const { steps, files } = recorder(root)
    const { bodies } = await claimedRoot(root, files)
    steps.length = 0
    await putBody(bodies, [Buffer.alloc(20 * WINDOW_LENGTH)])
    const half = steps.filter(step => step.includes('stage/')).map(step => step.split(' ')[0])
    expect(half.indexOf('sync')).toBeLessThan(half.lastIndexOf('write'))
    expect(half.slice(-3)).toEqual(['sync', 'close', 'rename'])
  })

  it('of a drop: every folder once, also when there was nothing to remove', async () => {
    const root = await temporaryFolder()
    const { steps, files } = recorder(root)
    const { bodies } = await claimedRoot(root, files)
    const stages = [0, 1, 2].map(n => `ab12${n}`.padEnd(32, '0') as StageId)
    for (const stage of stages) await putBody(bodies, [bytes], stage)
    for (let turn = 0; turn < 2; turn++) {
      steps.length = 0
      await bodies.drop(stages, call)
      expect(steps.filter(step => step.startsWith('sync')).sort()).toEqual(['sync ab/12', 'sync stage'])
      expect(steps.findLastIndex(step => step.startsWith('unlink'))).toBeLessThan(
        steps.findIndex(step => step.startsWith('sync'))
      )
    }
  })
})

describe('a step that fails', () => {
  const patterns = [
    /^sync stage\/./,
    /^mkdir ..$/,
    /^sync \.$/,
    /^mkdir ..\/..$/,
    /^sync ..$/,
    /^rename/,
    /^sync ..\/..$/
  ]
  it.each(patterns)('%s fails the put, leaves nothing, and no sync is tried again', async pattern => {
    const root = await temporaryFolder()
    let armed = false
    const { steps, files } = recorder(root, step => (armed && pattern.test(step) ? 'EIO' : undefined))
    const { engine, bodies } = await claimedRoot(root, files)
    const before = await openDescriptors()
    armed = true
    steps.length = 0
    const error = await putBody(bodies, [bytes]).catch(error => error)
    expect(error.code).toBe('EIO')
    expect(engine.classify(error)).toBe('unknown')
    expect(steps.filter(step => pattern.test(step))).toHaveLength(1)
    expect(await filesIn(root)).toEqual([])
    expect(await openDescriptors()).toBe(before)
    armed = false
    await putBody(bodies, [bytes])
  })

  it('that was begun ahead of the end fails what follows', async () => {
    const root = await temporaryFolder()
    const { files } = recorder(root, step => (step.startsWith('sync stage/') ? 'EIO' : undefined))
    const { bodies } = await claimedRoot(root, files)
    const writer = await bodies.create(newStage(), {}, call)
    const writing = async () => {
      for (let n = 0; n < 100; n++) await writer.write(bytes)
    }
    await expect(writing()).rejects.toThrow('EIO')
    await expect(writer.seal(keyOf(bytes))).rejects.toThrow('EIO')
    expect(await filesIn(root)).toEqual([])
  })

  it('fails the claim and leaves no half of one', async () => {
    const root = await temporaryFolder()
    const { files } = recorder(root, step => (step.startsWith('sync .alkblobs') ? 'EIO' : undefined))
    const { bodies } = await openRoot(root, files)
    await expect(bodies.claim(shared, call)).rejects.toThrow('EIO')
    expect(await filesIn(root)).toEqual([])
    expect(await bodies.claimed(call)).toBeUndefined()
  })

  it('in a drop fails the items of that folder', async () => {
    const root = await temporaryFolder()
    let armed = false
    const { files } = recorder(root, step => (armed && step === 'sync ab/12' ? 'EIO' : undefined))
    const { bodies } = await claimedRoot(root, files)
    const stages = ['ab12', 'cd34'].map(shard => shard.padEnd(32, '0') as StageId)
    for (const stage of stages) await putBody(bodies, [bytes], stage)
    armed = true
    const results = await bodies.drop(stages, call)
    expect(results.map(({ error }) => (error as NodeJS.ErrnoException)?.code)).toEqual(['EIO', undefined])
  })
})

describe('shards', () => {
  it('may be removed by somebody who tidies up, while a thousand bodies are put into them', async () => {
    const root = await temporaryFolder()
    const { bodies } = await claimedRoot(root)
    let tidies = true
    let removed = 0
    const tidying = (async () => {
      const tidy = async (path: string) => {
        removed += await nodeFiles
          .readdir(path)
          .then(() => import('node:fs/promises'))
          .then(({ rmdir }) => rmdir(path))
          .then(
            () => 1,
            () => 0
          )
      }
      while (tidies)
        for (const path of ['ab/1', 'ab/2', 'ab'].map(path => join(root, path.replace('/', '/0')))) await tidy(path)
    })()
    atEnd(() => rm(root, { recursive: true, force: true }))
    const stages = Array.from({ length: 1_000 }, (_, n) => `ab0${1 + (n % 2)}${newStage()}`.slice(0, 32) as StageId)
    for (let at = 0; at < stages.length; at += 8) {
      const batch = stages.slice(at, at + 8)
      const locators = await Promise.all(batch.map(stage => putBody(bodies, [Buffer.from(stage)], stage)))
      for (const locator of locators) expect(await bodies.length(locator, call)).toBe(32)
      await bodies.drop(batch, call)
    }
    tidies = false
    await tidying
    expect(removed).toBeGreaterThan(0)
  })
})

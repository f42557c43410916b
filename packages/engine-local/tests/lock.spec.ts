// An exclusive claim is held by one process at a time, and is free when that process is dead for certain.
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { PoolId } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { acquireLock } from '../src/bodies/lock.js'
import { nodeFiles } from '../src/files.js'
import { start, withChildren } from './processes.js'
import { atEnd, call, exclusive, openRoot, temporaryFolder } from './support.js'

withChildren()

async function take(root: string) {
  const { engine, bodies } = await openRoot(root)
  const claim = await bodies.claim(exclusive, call)
  return { claim, close: () => engine.close() }
}

describe('an exclusive claim', () => {
  it('is held in this process too, until the store closes', async () => {
    const root = await temporaryFolder()
    const first = await take(root)
    expect(first.claim).toEqual(exclusive)
    expect((await take(root)).claim).toBe('held')
    await first.close()
    const second = await take(root)
    expect(second.claim).toEqual(exclusive)
    expect((await take(root)).claim).toBe('held')
    await second.close()
  })

  it('outlives neither a killed holder nor its zombie, and has one heir among eight', async () => {
    const root = await temporaryFolder()
    for (let round = 0; round < 3; round++) {
      const holder = start('hold', root)
      expect(await holder.answer()).toEqual(exclusive)
      const refused = start('hold', root)
      expect(await refused.answer()).toBe('held')
      await refused.kill()
      await holder.kill()
      const heirs = Array.from({ length: 8 }, () => start('hold', root))
      const answers = await Promise.all(heirs.map(heir => heir.answer()))
      expect(answers.filter(answer => answer === 'held')).toHaveLength(7)
      for (const heir of heirs) await heir.kill()
    }
  })

  it('passes from hand to hand among eight processes, one at a time, and leaves two generations', async () => {
    const root = await temporaryFolder()
    await (await take(root)).close()
    const children = Array.from({ length: 8 }, () => start('pass on', root))
    const held = (await Promise.all(children.map(child => child.answers()))).flat() as { from: string; to: string }[]
    expect(held).toHaveLength(160)
    const turns = held.map(({ from, to }) => [BigInt(from), BigInt(to)] as const).sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [n, [from]] of turns.entries()) {
      const before = turns[n - 1]
      if (before !== undefined) expect(from > before[1]).toBe(true)
    }
    const names = (await readdir(root)).filter(name => name.startsWith('lock.') || name.startsWith('.'))
    expect(names.sort()).toEqual(['lock.160', 'lock.160.released', 'lock.161', 'lock.161.released'])
  }, 60_000)

  it('is believed in wherever its holder is not provably dead', async () => {
    const root = await temporaryFolder()
    const first = await take(root)
    const lock = join(root, 'lock.1')
    const ours = JSON.parse(await readFile(lock, 'utf8'))
    expect(ours).toMatchObject({ pid: process.pid, host: hostname() })
    atEnd(first.close)
    const dead = { ...ours, pid: 2 ** 22 + 1 }
    const held = [
      ours,
      { ...dead, host: 'another' },
      { ...dead, pidNamespace: 'pid:[1]' },
      { ...dead, bootId: 'another', machineId: undefined },
      { ...dead, bootId: 'another', machineId: 'another' },
      { ...dead, pid: 'x' },
      { ...ours, startTime: undefined }
    ]
    for (const holder of held) {
      await replace(lock, JSON.stringify(holder))
      expect((await take(root)).claim, JSON.stringify(holder)).toBe('held')
    }
    await replace(lock, 'rubbish')
    expect((await take(root)).claim).toBe('held')
    expect((await readdir(root)).filter(name => name.startsWith('lock.'))).toEqual(['lock.1'])
  })

  it.each([
    ['process is gone', (ours: object) => ({ ...ours, pid: 2 ** 22 + 1 })],
    ['number was given to a later process', (ours: object) => ({ ...ours, startTime: '1' })]
  ])('is free when its holder’s %s', async (_, make) => {
    const root = await temporaryFolder()
    const first = await take(root)
    const lock = join(root, 'lock.1')
    await replace(lock, JSON.stringify(make(JSON.parse(await readFile(lock, 'utf8')))))
    const heir = await take(root)
    expect(heir.claim).toEqual(exclusive)
    // Even a release that comes late does not touch the heir.
    await first.close()
    expect((await take(root)).claim).toBe('held')
    await heir.close()
  })
})

describe('a slow acquirer', () => {
  it('whose low number has become free again withdraws when it sees a higher one', async () => {
    const root = await temporaryFolder()
    const holder = await take(root)
    atEnd(holder.close)
    const ours = JSON.parse(await readFile(join(root, 'lock.1'), 'utf8'))
    // Since it looked, generations 5 to 7 came; 7 is alive, and has removed the others.
    await rename(join(root, 'lock.1'), join(root, 'lock.7'))
    await writeFile(join(root, 'lock.4'), JSON.stringify({ ...ours, pid: 2 ** 22 + 1 }))
    const looks: string[] = []
    const readdir = (async (path: string) => {
      looks.push(path)
      const isFirst = path === root && looks.filter(look => look === root).length === 1
      return isFirst ? ['lock.4'] : await nodeFiles.readdir(path)
    }) as typeof nodeFiles.readdir
    expect(await acquireLock(root, { ...nodeFiles, readdir })).toBe('held')
    expect(looks.filter(look => look === root)).toHaveLength(3)
    expect(
      (await nodeFiles.readdir(root)).filter(name => name.includes('lock') || name.startsWith('.')).sort()
    ).toEqual(['lock.4', 'lock.7'])
  })
})

async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

describe('taking a folder over', () => {
  it('is for the store that holds it, and keeps it held', async () => {
    const root = await temporaryFolder()
    const { bodies } = await openRoot(root)
    expect(await bodies.claim(exclusive, call)).toEqual(exclusive)
    const next = { ...exclusive, poolId: 'pool-2' as PoolId }
    expect(await bodies.reclaim?.(exclusive.poolId, next, call)).toBe(true)
    expect(await bodies.claimed(call)).toEqual(next)
    const other = (await openRoot(root)).bodies
    await expect(other.reclaim?.(next.poolId, exclusive, call)).rejects.toMatchObject({ code: 'conflict' })
    expect(await other.claim(next, call)).toBe('held')
  })
})

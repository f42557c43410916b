/** A folder of bodies against plain data, step by random step; and folders that hold what we did not write. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Overrides, override } from '@alkblobs/conformance'
import { runBodiesModel } from '@alkblobs/conformance/model'
import { type BodyStore, type Found, InvalidArgumentError, type StageId } from '@alkblobs/core/engine'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type LocalConfig, local } from '../src/index.js'
import { shardFolders } from '../src/layout.js'
import { call, context, newStage, putBody, shared } from './support.js'

/** In memory where there is such a folder: what is tried is the store, not the disk. */
const below = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

async function open(wrong: (inner: BodyStore) => Overrides<BodyStore> = () => ({})) {
  const folder = mkdtempSync(join(below, 'alkblobs-local-'))
  const root = join(folder, 'large')
  const engine = await local({ root }).open(context)
  const bodies = engine.bodies as BodyStore
  return {
    root,
    bodies: override(bodies, wrong(bodies)),
    async close() {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

test('the body store does what the model does', async () => {
  const done = await runBodiesModel(() => open(), { timeLimitMs: 3_000 })
  process.stdout.write(`bodies of local: ${done.runs} runs, ${done.steps} steps, seed ${done.seed}\n`)
  expect(done.runs).toBeGreaterThan(0)
}, 60_000)

/** Body stores that are wrong in one way each: a model that finds none of them is worth nothing. */
const wrongs: Readonly<Record<string, (inner: BodyStore) => Overrides<BodyStore>>> = {
  'reads one byte too many': inner => ({
    read: (locator, { start, end }, given) => inner.read(locator, { start, end: end + 1 }, given)
  }),
  'drops locators alone': inner => ({
    async drop(what, given) {
      const locators = what.filter(name => name.length > 32)
      if (locators.length > 0) await inner.drop(locators, given)
      return what.map(name => ({ what: name }))
    }
  }),
  'finds the first body of a page twice': inner => ({
    async scan(after, limit, given) {
      const page = await inner.scan(after, Math.max(1, limit - 1), given)
      return limit > 1 ? { ...page, found: [...page.found.slice(0, 1), ...page.found] } : page
    }
  }),
  'has a length for what is gone': inner => ({
    length: async (locator, given) => (await inner.length(locator, given)) ?? 0
  })
}

describe('the model finds a body store that', () => {
  for (const [name, wrong] of Object.entries(wrongs)) {
    test(name, async () => {
      const options = { seed: 3, timeLimitMs: 20_000, shrinkLimitMs: 0 }
      await expect(runBodiesModel(() => open(wrong), options)).rejects.toThrow('Property failed')
    })
  }
})

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
/** Names that are almost ours, and any others that a file can have. */
const names = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9 ._-]{1,40}$/),
  fc
    .tuple(hex(32), hex(64), fc.constantFrom('01', '-1', '1e3', '99999999999999999', '', '0x1'))
    .map(parts => parts.join('.')),
  fc.tuple(hex(31), hex(64), fc.nat().map(String)).map(parts => parts.join('.')),
  fc.tuple(hex(32), hex(63)).map(parts => parts.join('.')),
  hex(31),
  hex(33),
  hex(2)
)
/** Written out anew: a parser that takes too much must not say what is tried. */
const OURS = /^[0-9a-f]{32}(\.[0-9a-f]{64}\.(0|[1-9][0-9]{0,15}))?$/
const strange = fc
  .record({
    name: names.filter(name => !OURS.test(name) && !/^\.+$/.test(name)),
    place: fc.constantFrom('root', 'stage', 'shard', 'inner'),
    kind: fc.constantFrom('file', 'folder', 'link')
  })
  .filter(({ name, place }) => !(place === 'root' && (name.startsWith('lock.') || name === 'stage')))

async function scanAll(bodies: BodyStore): Promise<readonly Found[]> {
  const found: Found[] = []
  for (let after: string | undefined; ; ) {
    const page = await bodies.scan(after, 2, call)
    found.push(...page.found)
    if (page.next === undefined) return found
    after = page.next
  }
}

/** Something of somebody else's beside the body of a stage, under a name that would lie there if it were ours. */
function beside(stage: StageId, root: string, { name, place, kind }: { name: string; place: string; kind: string }) {
  const [outer, inner] = shardFolders(root, stage)
  const folder = { root, stage: join(root, 'stage'), shard: outer, inner }[place] as string
  const own = /^[0-9a-f]{31}/.test(name) ? stage.slice(0, 4) + name.slice(4) : name
  return { path: join(folder, own), name: own, kind }
}

function lay(root: string, { path, kind }: { path: string; kind: string }): void {
  if (existsSync(path)) return
  if (kind === 'file') writeFileSync(path, 'holiday')
  else if (kind === 'folder') mkdirSync(path)
  else symlinkSync(join(root, '..', 'outside'), path)
}

test('what we did not write is neither found nor dropped, wherever it lies', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(strange, { minLength: 1, maxLength: 6 }), async things => {
      const { root, bodies, close } = await open()
      try {
        await bodies.claim(shared, call)
        mkdirSync(join(root, '..', 'outside'))
        writeFileSync(join(root, '..', 'outside', 'precious'), 'precious')
        const stage = newStage()
        const locator = await putBody(bodies, [Buffer.from('ours')], stage)
        const laid = things.map(thing => beside(stage, root, thing))
        for (const thing of laid) lay(root, thing)
        expect((await scanAll(bodies)).map(each => each.sealed?.locator)).toEqual([locator])
        // Whatever is asked to go by such a name is refused or is not there; nothing of it is touched.
        for (const { name } of laid) await bodies.drop([name as StageId], call).catch(() => undefined)
        expect(await bodies.drop([locator], call)).toEqual([{ what: locator }])
        expect(await scanAll(bodies)).toEqual([])
        for (const { path } of laid) expect(existsSync(path), path).toBe(true)
        expect(readFileSync(join(root, '..', 'outside', 'precious'), 'utf8')).toBe('precious')
      } finally {
        await close()
      }
    }),
    { numRuns: 40 }
  )
}, 60_000)

test('any config is a definition or a typed error', () => {
  const odd = fc.oneof(
    fc.constantFrom<unknown>(null, undefined, '', 'a\0b', 7, 1.5, '128', 3, 4, 65_536, 65_537),
    fc.anything()
  )
  const roots = fc.oneof(fc.constantFrom('files', './a/b', '/ö', ' '), fc.string())
  const config = fc.record(
    {
      root: fc.oneof({ weight: 3, arbitrary: roots }, { weight: 1, arbitrary: odd }),
      openMax: fc.oneof({ weight: 2, arbitrary: fc.integer({ min: 4, max: 65_536 }) }, { weight: 1, arbitrary: odd })
    },
    { requiredKeys: [] }
  )
  let taken = 0
  fc.assert(
    fc.property(fc.oneof({ weight: 6, arbitrary: config }, { weight: 1, arbitrary: odd }), given => {
      const { root, openMax } = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
      const isRoot = typeof root === 'string' && root !== '' && !root.includes('\0')
      const isCount = Number.isInteger(openMax) && (openMax as number) >= 4 && (openMax as number) <= 65_536
      if (!isRoot || !(openMax === undefined || isCount)) {
        expect(() => local(given as LocalConfig)).toThrow(InvalidArgumentError)
      } else {
        expect(local(given as unknown as LocalConfig).name).toBe('local')
        taken++
      }
    }),
    { numRuns: 1_000 }
  )
  expect(taken).toBeGreaterThan(100)
})

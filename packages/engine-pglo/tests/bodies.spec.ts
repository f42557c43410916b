// Bodies written, read, dropped and scanned, on a real server.
import { randomBytes } from 'node:crypto'
import { type Found, type Locator, type StageId, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { expect, it } from 'vitest'
import {
  backends,
  call,
  claimed,
  database,
  dropAll,
  failure,
  keyOf,
  MIB,
  newStage,
  objects,
  onServer,
  open,
  pattern,
  putBody,
  readRange,
  rows,
  shared,
  waitingWriter
} from './support.js'

onServer('a schema that is not there', () => {
  it('is not made by opening or reading, and nothing is known to be gone from it', async () => {
    const db = await database()
    const { engine, bodies } = await open(db)
    expect(await bodies.claimed(call)).toBeUndefined()
    expect(await bodies.scan(undefined, 9, call)).toEqual({ found: [], next: undefined })
    const locator = `lo.${'0'.repeat(32)}` as Locator
    expect(await failure(engine, bodies.length(locator, call))).toBe('transient')
    expect(await failure(engine, readRange(bodies, locator))).toBe('transient')
    expect(await failure(engine, bodies.create(newStage(), {}, call))).toBe('foreign')
    expect(engine.classify((await bodies.drop([locator], call))[0]?.error)).toBe('foreign')
    expect(await db.query("SELECT nspname FROM pg_namespace WHERE nspname = 'lo'")).toEqual([])
  })
})

onServer('a body', () => {
  // Lengths around the large-object page, the window, and the second window.
  it('comes back, whatever its length and its chunks', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    for (const length of [0, 1, 2_047, 2_048, 2_049, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB + 7]) {
      const bytes = pattern(length)
      for (const step of [length || 1, 65_536, 700_001, MIB + 13]) {
        const chunks = []
        for (let at = 0; at < length; at += step) chunks.push(bytes.subarray(at, at + step))
        const locator = await putBody(bodies, chunks)
        expect(await bodies.length(locator, call)).toBe(length)
        expect((await readRange(bodies, locator)).equals(bytes)).toBe(true)
      }
    }
    expect(await objects(db)).toBe(await rows(db))
  })

  it('is written in order from reused buffers, and without a hint of its length', async () => {
    const { bodies } = await claimed(await database())
    const bytes = randomBytes(5 * MIB + 3)
    const writer = await bodies.create(newStage(), {}, call)
    const reused = Buffer.alloc(3 * MIB)
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const length = Math.min([1, 2.5 * MIB, 4_097, MIB][turn % 4] as number, bytes.length - at)
      bytes.copy(reused, 0, at, at + length)
      await writer.write(reused.subarray(0, length))
      reused.fill(0)
      at += length
    }
    const locator = await writer.seal(keyOf(bytes))
    expect((await readRange(bodies, locator)).equals(bytes)).toBe(true)
  })

  it('has ranges, clamped by what is held, in chunks of at most a window that nobody else uses', async () => {
    const { bodies } = await claimed(await database())
    const bytes = pattern(3 * WINDOW_LENGTH + 7)
    const locator = await putBody(bodies, [bytes])
    for (const [start, end] of [
      [0, 1],
      [5, 70_000],
      [WINDOW_LENGTH - 1, 2 * WINDOW_LENGTH + 1],
      [bytes.length - 1, bytes.length + 9],
      [bytes.length, bytes.length + 1],
      [bytes.length + 5, 2 ** 52],
      [2 ** 42 - 1, 2 ** 42 + 5],
      [2 ** 52, Number.MAX_SAFE_INTEGER]
    ] as const) {
      expect((await readRange(bodies, locator, start, end)).equals(bytes.subarray(start, end))).toBe(true)
    }
    const lengths = []
    for await (const chunk of bodies.read(locator, { start: 0, end: bytes.length }, call)) {
      lengths.push(chunk.length)
      expect(chunk.buffer.byteLength).toBe(chunk.length)
      chunk.fill(0)
    }
    expect(lengths).toEqual([WINDOW_LENGTH, WINDOW_LENGTH, WINDOW_LENGTH, 7])
    expect((await readRange(bodies, locator)).equals(bytes)).toBe(true)
  })

  it('keeps positions beyond 32 bits', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    const locator = await putBody(bodies, [Buffer.from('start')])
    const far = 5 * 1024 ** 3 + 11
    await db.query(`SELECT lo_put(loid, ${far}, 'end') FROM lo.lo_entries`)
    expect(await bodies.length(locator, call)).toBe(far + 3)
    expect((await readRange(bodies, locator, far, far + 100)).toString()).toBe('end')
    expect((await bodies.scan(undefined, 9, call)).found[0]?.sealed).toMatchObject({ length: far + 3, whole: false })
  })

  it('is invisible before the seal, and found from its stage id', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    const stage = newStage()
    const bytes = pattern(2 * MIB + 1)
    const writer = await bodies.create(stage, { length: bytes.length }, call)
    await writer.write(bytes)
    expect(await waitingWriter(db)).toBeGreaterThan(0)
    expect(await objects(db)).toBe(0)
    expect((await bodies.scan(undefined, 9, call)).found).toEqual([])
    const locator = await writer.seal(keyOf(bytes))
    expect(await backends(db, 'idle in transaction')).toHaveLength(0)
    expect((await bodies.scan(undefined, 9, call)).found).toEqual([
      { stage, sealed: { locator, key: keyOf(bytes), length: bytes.length, whole: true } }
    ])
    expect(await bodies.drop([stage], call)).toEqual([{ what: stage }])
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
  })

  it('of one window holds no session while it is written', async () => {
    const db = await database()
    const { bodies } = await claimed(db, { poolMax: 2 })
    const writers = await Promise.all(Array.from({ length: 20 }, () => bodies.create(newStage(), {}, call)))
    for (const writer of writers) await writer.write(pattern(MIB))
    expect(await backends(db, 'idle in transaction')).toHaveLength(0)
    for (const writer of writers) await writer.seal(keyOf(pattern(MIB)))
    expect(await objects(db)).toBe(20)
  })

  it.each([10, 2 * MIB])('of %i bytes is not made twice from one stage', async length => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const stage = newStage()
    const first = await bodies.create(stage, {}, call)
    const second = await bodies.create(stage, {}, call)
    await first.write(pattern(length))
    const late = second.write(pattern(length)).then(() => second.seal(keyOf(pattern(length))))
    const lost = failure(
      engine,
      first.seal(keyOf(pattern(length))).then(() => late)
    )
    await late.catch(() => undefined)
    expect(['unknown', 'conflict']).toContain(await lost)
    // The loser takes back what it made, which is nothing.
    await second.discard()
    expect(await bodies.length(`lo.${stage}` as Locator, call)).toBe(length)
    expect(await failure(engine, bodies.create(stage, {}, call))).toBe('unknown')
    expect(await failure(engine, bodies.create('../../x' as StageId, {}, call))).toBe('corrupt')
    expect(await objects(db)).toBe(1)
  })

  it('leaves nothing when it is discarded, once, twice, or after its seal came too late', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    for (const length of [5, 2 * MIB + 5]) {
      for (const seals of [false, true]) {
        const writer = await bodies.create(newStage(), {}, call)
        await writer.write(pattern(length))
        if (seals) await writer.seal(keyOf(pattern(length)))
        await writer.discard()
        await writer.discard()
        await expect(writer.write(Buffer.from('x'))).rejects.toThrow(seals ? 'sealed' : 'discarded')
        expect([await objects(db), await rows(db)]).toEqual([0, 0])
      }
    }
    expect(await backends(db, 'idle in transaction')).toHaveLength(0)
  })
})

onServer('reading', () => {
  it('calls gone only what is not there', async () => {
    const { engine, bodies } = await claimed(await database())
    const locator = await putBody(bodies, [pattern(100_000)])
    await bodies.drop([locator], call)
    expect(await bodies.length(locator, call)).toBeUndefined()
    expect(await failure(engine, readRange(bodies, locator, 0, 10))).toBe('gone')
    expect(await failure(engine, readRange(bodies, '../alkblobs' as Locator))).toBe('corrupt')
    expect(await failure(engine, bodies.length('lo.1' as Locator, call))).toBe('corrupt')
  })

  it('goes on when its consumer passes the memory of each chunk on', async () => {
    const { bodies } = await claimed(await database())
    const whole = pattern(4 * MIB + 5)
    const locator = await putBody(bodies, [whole])
    const taken: Uint8Array[] = []
    for await (const chunk of bodies.read(locator, { start: 1, end: whole.length }, call)) {
      taken.push(structuredClone(chunk, { transfer: [chunk.buffer as ArrayBuffer] }))
    }
    expect(Buffer.compare(Buffer.concat(taken), whole.subarray(1))).toBe(0)
  })

  it('is gone in the middle when the object is dropped there, and never another object', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const whole = pattern(4 * MIB)
    const locator = await putBody(bodies, [whole])
    const [row] = await db.query<{ loid: number }>('SELECT loid FROM lo.lo_entries')
    const reader = bodies.read(locator, { start: 0, end: 4 * MIB }, call)[Symbol.asyncIterator]()
    expect((await reader.next()).value).toHaveLength(MIB)
    await bodies.drop([locator], call)
    // The server may give the number out again: here somebody asks for it by name.
    await db.query('SELECT lo_from_bytea($1::oid, $2::bytea)', [row?.loid as number, Buffer.alloc(4 * MIB, 1)])
    // The second window may have been on its way.
    const second = await reader.next().catch(error => error)
    if (second instanceof Error) expect(engine.classify(second)).toBe('gone')
    else {
      expect(Buffer.compare(second.value as Uint8Array, whole.subarray(MIB, 2 * MIB))).toBe(0)
      expect(await failure(engine, reader.next())).toBe('gone')
    }
    await db.query('SELECT lo_unlink($1::oid)', [row?.loid as number])
  })

  it('tells what an object lacks that its row claims', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    const locator = await putBody(bodies, [pattern(100_000)])
    await db.query('UPDATE lo.lo_entries SET length = 2 ^ 53 - 1')
    expect(await bodies.length(locator, call)).toBe(100_000)
    expect(await readRange(bodies, locator)).toHaveLength(100_000)
    expect(await readRange(bodies, locator, 100_000, 2 ** 53 - 1)).toHaveLength(0)
    expect((await bodies.scan(undefined, 9, call)).found[0]?.sealed).toMatchObject({ length: 100_000, whole: false })
    await db.query('UPDATE lo.lo_entries SET length = 100000')
    await db.query('SELECT lo_truncate64(lo_open(loid, 131072), 70000) FROM lo.lo_entries')
    expect(await bodies.length(locator, call)).toBe(70_000)
    expect(await readRange(bodies, locator)).toHaveLength(70_000)
    expect((await bodies.scan(undefined, 9, call)).found[0]?.sealed).toMatchObject({ length: 70_000, whole: false })
  })

  it('calls gone a row whose object was taken away, which can still be dropped', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const locator = await putBody(bodies, [pattern(10)])
    await db.query('SELECT lo_unlink(loid) FROM lo.lo_entries')
    expect(await bodies.length(locator, call)).toBeUndefined()
    expect(await failure(engine, readRange(bodies, locator))).toBe('gone')
    expect((await bodies.scan(undefined, 9, call)).found[0]?.sealed).toMatchObject({ length: 0, whole: false })
    expect(await bodies.drop([locator], call)).toEqual([{ what: locator }])
    expect(await rows(db)).toBe(0)
  })

  it('by ten slow readers with two connections holds none, and those who stop give theirs back', async () => {
    const db = await database()
    const { bodies } = await claimed(db, { poolMax: 2 })
    const all = Array.from({ length: 10 }, (_, n) => Buffer.alloc(3 * MIB + n, n))
    const locators = await Promise.all(all.map(bytes => putBody(bodies, [bytes])))
    const readers = locators.map(locator => bodies.read(locator, { start: 0, end: 4 * MIB }, call))
    const read = await Promise.all(
      readers.map(async (reader, n) => {
        const chunks: Uint8Array[] = []
        for await (const chunk of reader) {
          chunks.push(chunk)
          await new Promise(resolve => setTimeout(resolve, 30))
          if (n % 2 === 1) break
        }
        return Buffer.concat(chunks)
      })
    )
    for (const [n, bytes] of read.entries()) {
      expect(bytes.equals(n % 2 === 1 ? (all[n] as Buffer).subarray(0, MIB) : (all[n] as Buffer))).toBe(true)
    }
    expect(await backends(db, 'idle in transaction')).toHaveLength(0)
    expect(await bodies.length(locators[0] as Locator, call)).toBe(3 * MIB)
  })

  it('feeds a write in the same store, although every place is taken by a write', async () => {
    const { bodies } = await claimed(await database(), { poolMax: 2 })
    const bytes = pattern(4 * MIB)
    const source = await putBody(bodies, [bytes])
    const copies = Array.from({ length: 4 }, async () => {
      const writer = await bodies.create(newStage(), {}, call)
      for await (const chunk of bodies.read(source, { start: 0, end: bytes.length }, call)) await writer.write(chunk)
      return await writer.seal(keyOf(bytes))
    })
    for (const copy of await Promise.all(copies)) expect((await readRange(bodies, copy)).equals(bytes)).toBe(true)
  })
})

onServer('dropping and scanning', () => {
  it('thousands at once takes batches, and each item has its result', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    const stages = Array.from({ length: 2_500 }, newStage)
    await db.query(
      `INSERT INTO lo.lo_entries (stage, loid, key, length)
       SELECT s::uuid, lo_from_bytea(0, 'body'), decode(repeat('00', 32), 'hex'), 4 FROM unnest($1::text::text[]) s`,
      [`{${stages.join(',')}}`]
    )
    const what = [...stages, newStage(), 'nothing of ours' as Locator, `lo.${newStage()}` as Locator]
    expect(await bodies.drop(what, call)).toEqual(what.map(item => ({ what: item })))
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
    expect(await bodies.drop(what, call)).toEqual(what.map(item => ({ what: item })))
  })

  it('a body too long for one transaction goes in steps, and counts as gone from the first one on', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const stage = newStage()
    const locator = await putBody(bodies, [Buffer.from('start')], stage)
    await db.query(`SELECT lo_put(loid, ${5 * 1024 ** 3}, 'end') FROM lo.lo_entries`)
    await db.query(`UPDATE lo.lo_entries SET length = ${5 * 1024 ** 3 + 3}, dropping = true`)
    expect(await bodies.length(locator, call)).toBeUndefined()
    expect(await failure(engine, readRange(bodies, locator))).toBe('gone')
    expect((await bodies.scan(undefined, 9, call)).found).toEqual([{ stage }])
    expect(await bodies.drop([locator], call)).toEqual([{ what: locator }])
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
  })

  it('while a body is written fails for that stage alone, and takes it once it is ended', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const [busy, sealed] = [newStage(), newStage()]
    await putBody(bodies, [pattern(10)], sealed)
    const writer = await bodies.create(busy, {}, call)
    await writer.write(pattern(2 * MIB))
    const results = await bodies.drop([busy, sealed], call)
    expect(results.map(({ error }) => error && engine.classify(error))).toEqual(['conflict', undefined])
    expect(await rows(db)).toBe(0)
    await Promise.all([dropAll({ engine, bodies }, [busy]), writer.seal(keyOf(pattern(2 * MIB)))])
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
  })

  it('at the same moment from two stores, both are told it is done', async () => {
    const db = await database()
    const one = await claimed(db)
    const other = await claimed(db)
    const stages = Array.from({ length: 300 }, newStage)
    await Promise.all(stages.map(stage => putBody(one.bodies, [Buffer.from(stage)], stage)))
    await Promise.all([dropAll(one, stages), dropAll(other, stages.toReversed())])
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
  })

  it('pages through everything once, in the order of the stages', async () => {
    const { bodies } = await claimed(await database())
    const stages = Array.from({ length: 25 }, newStage).sort()
    await Promise.all(stages.map(stage => putBody(bodies, [Buffer.from(stage)], stage)))
    for (const limit of [1, 7, 25, 26]) {
      const found: Found[] = []
      let after: string | undefined
      do {
        const page = await bodies.scan(after, limit, call)
        found.push(...page.found)
        after = page.next
      } while (after !== undefined)
      expect(found.map(({ stage }) => stage)).toEqual(stages)
    }
  })

  it('after a re-claim by the same pool finds what was there', async () => {
    const db = await database()
    const first = await claimed(db)
    const locator = await putBody(first.bodies, [pattern(9)])
    await first.engine.close()
    const { bodies } = await open(db)
    expect(await bodies.claimed(call)).toEqual(shared)
    expect(await readRange(bodies, locator)).toEqual(pattern(9))
  })
})

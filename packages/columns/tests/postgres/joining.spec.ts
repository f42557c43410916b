/** `store.joining(sql)`: blobs and the application's rows in one commit. */
import { CorruptBlobError, openStore } from '@alkblobs/core'
import { mem } from '@alkblobs/engine-mem'
import { freshDatabase, freshRole, noServer } from '@alkblobs/testkit'
import driver from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Bench, KINDS, LONG, SHORT, transaction } from './joined-stores.js'

const failure = (promise: Promise<unknown>) =>
  promise.then(
    value => ({ resolved: value }),
    error => error
  )
const refused = { code: 'ERR_BLOB_INVALID_ARGUMENT', argument: 'transaction' }
const conflict = { code: 'ERR_BLOB_ENGINE', kind: 'conflict' }

describe.skipIf(noServer() !== undefined).each(KINDS)('a put in a transaction of the application (%s)', kind => {
  const contents = [SHORT, LONG, Buffer.alloc(0), Buffer.alloc(3_001, 3)]

  it('is there with the commit, and so is what refers to it', async () => {
    const bench = await Bench.of(kind)
    const { store, sql } = bench
    const eye = await bench.another()
    const keys = await sql.begin(async tx => {
      const joined = await store.joining(tx)
      const keys: string[] = []
      for (const content of contents) {
        const receipt = await joined.put(content)
        expect(receipt).toEqual({ key: receipt.key, length: content.length, created: true })
        expect(await eye.has(receipt.key)).toBe(false)
        await tx`INSERT INTO files VALUES (${receipt.key})`
        keys.push(receipt.key)
      }
      expect(await joined.put(SHORT)).toEqual({ key: keys[0], length: SHORT.length, created: false })
      return keys
    })
    for (const [i, key] of keys.entries()) {
      expect(Buffer.from((await (await eye.get(key))?.bytes()) ?? []).equals(contents[i] as Buffer)).toBe(true)
    }
    expect(await bench.files()).toEqual(await bench.entries())
    expect(await bench.left()).toEqual({ stages: 0, trash: 0, window: 0 })
    expect(await bench.sweep()).toBe(0)
    expect(await bench.entries()).toHaveLength(contents.length)
    expect(await eye.verify()).toMatchObject({ entries: contents.length, clean: true })
  })

  it('leaves nothing after a rollback, once its stage has expired', async () => {
    const bench = await Bench.of(kind, { stageTtlMs: 300 })
    const { store, sql } = bench
    await failure(
      sql.begin(async tx => {
        const joined = await store.joining(tx)
        for (const content of contents) await tx`INSERT INTO files VALUES (${(await joined.put(content)).key})`
        throw new Error('enough')
      })
    )
    expect([await bench.files(), await bench.entries()]).toEqual([[], []])
    const { stages } = await bench.left()
    expect(stages).toBe(kind === 'kv-only' ? 0 : 2)
    while ((await bench.query('SELECT 1 FROM $.stages WHERE expires_at > clock_timestamp()')).length > 0) {
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    // It may have come by itself, and be at it now.
    const maintained = async () => {
      await store.maintain()
      return bench.left()
    }
    await expect.poll(maintained).toEqual({ stages: 0, trash: 0, window: 0 })
    expect(await store.verify()).toMatchObject({ entries: 0, clean: true })
    for (const content of contents) expect((await store.put(content)).created).toBe(true)
  })

  it('is undone by a rollback to a savepoint, and what came before it is not', async () => {
    const bench = await Bench.of(kind)
    const { store, sql } = bench
    await sql.begin(async tx => {
      const joined = await store.joining(tx)
      const kept = await joined.put(SHORT)
      await tx`INSERT INTO files VALUES (${kept.key})`
      await failure(
        tx.savepoint(async sub => {
          const inner = await store.joining(sub)
          const undone = await inner.put(LONG)
          await sub`INSERT INTO files VALUES (${undone.key})`
          throw new Error('not this')
        })
      )
    })
    expect(await bench.files()).toEqual(await bench.entries())
    expect(await bench.entries()).toHaveLength(1)
    await sql.begin(async tx => {
      const again = await (await store.joining(tx)).put(LONG)
      expect(again.created).toBe(true)
      await tx`INSERT INTO files VALUES (${again.key})`
    })
    expect(await bench.entries()).toHaveLength(2)
  })

  it('finds what is there, and keeps a candidate from being swept if it commits, and only then', async () => {
    const bench = await Bench.of(kind)
    const { store, sql } = bench
    const key = await bench.unprotected(LONG)
    const other = await bench.another()
    other.protect({ name: 'none', live: () => [] })
    expect(await other.sweep()).toMatchObject({ candidatesStaged: 1 })
    const undone = await transaction(sql)
    expect(await (await store.joining(undone.tx)).put(LONG)).toMatchObject({ key, created: false })
    await undone.rollback()
    expect(await bench.query('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: false }])
    const done = await transaction(sql)
    expect(await (await store.joining(done.tx)).put(LONG)).toMatchObject({ key, created: false })
    // Its entry is locked, so the candidate is put off.
    expect(await other.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 0 })
    await done.commit()
    expect(await other.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 1, candidatesStaged: 1 })
    expect(await other.sweep()).toMatchObject({ deleted: 1 })
    expect(await bench.left()).toMatchObject({ stages: 0, trash: 0, window: 0 })
  })

  it('of long content that is there already takes its own bytes back', async () => {
    const bench = await Bench.of(kind)
    const { store, sql } = bench
    await (await store.put(LONG)).release()
    await sql.begin(async tx => {
      async function* stream() {
        yield LONG
      }
      const joined = await store.joining(tx)
      expect(await joined.put(stream())).toMatchObject({ created: false })
      expect(await bench.left()).toEqual({ stages: 0, trash: 0, window: 0 })
    })
    expect(await store.verify()).toMatchObject({ entries: 1, clean: true })
  })
})

describe.skipIf(noServer() !== undefined)('a joined store', () => {
  it('is refused for what is no open transaction where the pool is', async () => {
    const { store, sql, database } = await Bench.of('kv-only')
    await expect(store.joining(undefined)).rejects.toMatchObject(refused)
    await expect(store.joining({ unsafe: () => [] })).rejects.toMatchObject(refused)
    await expect(store.joining(sql)).rejects.toMatchObject(refused)
    const single = driver(database.url, { max: 1 })
    onTestFinished(() => single.end({ timeout: 1 }))
    await expect(store.joining(single)).rejects.toMatchObject(refused)
    for (const options of ['isolation level serializable', 'isolation level repeatable read', 'read only']) {
      const other = await transaction(sql, options)
      await expect(store.joining(other.tx)).rejects.toMatchObject(refused)
      // The refusal is no failed statement: the transaction goes on.
      await other.tx`SELECT 1`
      await other.commit()
    }
    const elsewhere = await freshDatabase()
    onTestFinished(() => elsewhere.drop())
    const away = driver(elsewhere.url, { max: 1 })
    onTestFinished(() => away.end({ timeout: 1 }))
    const other = await transaction(away)
    await expect(store.joining(other.tx)).rejects.toMatchObject(refused)
    await other.rollback()
  })

  it('is refused by a store whose catalog takes part in no transaction', async () => {
    const { sql } = await Bench.of('kv-only')
    const memory = await openStore({ kv: mem() })
    const other = await transaction(sql)
    await expect(memory.joining(other.tx)).rejects.toMatchObject(refused)
    await other.rollback()
    await memory.close()
  })

  it('does nothing once its transaction has ended, least of all without one', async () => {
    const bench = await Bench.of('postgres + local')
    const { store, sql } = bench
    const one = await transaction(sql)
    const joined = await store.joining(one.tx)
    await one.commit()
    for (const content of [SHORT, LONG]) await expect(joined.put(content)).rejects.toMatchObject(conflict)
    // The same session is in another transaction now.
    const single = driver(bench.database.url, { max: 1 })
    onTestFinished(() => single.end({ timeout: 1 }))
    const first = await transaction(single)
    const kept = await store.joining(first.tx)
    await first.rollback()
    const second = await transaction(single)
    await expect(kept.put(SHORT)).rejects.toMatchObject(conflict)
    await second.commit()
    expect(await bench.entries()).toEqual([])
    expect(await bench.left()).toEqual({ stages: 0, trash: 0, window: 0 })
  })

  it('does not take part in a manual transaction that has failed, and takes part in one that has not', async () => {
    const bench = await Bench.of('kv-only')
    const { store, sql } = bench
    const session = await sql.reserve()
    await session.unsafe('BEGIN')
    const { key } = await (await store.joining(session)).put(SHORT)
    await session.unsafe('COMMIT')
    expect(await bench.entries()).toEqual([key])
    await session.unsafe('BEGIN')
    const joined = await store.joining(session)
    await failure(session.unsafe('SELECT 1 / 0'))
    expect(await failure(joined.put(LONG))).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    expect(await failure(store.joining(session))).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    await session.unsafe('ROLLBACK')
    session.release()
    expect(await bench.entries()).toEqual([key])
  })

  it('checks content and options as the store does, and tells errors without content', async () => {
    const bench = await Bench.of('kv-only')
    const { store, sql } = bench
    const other = await transaction(sql)
    const joined = await store.joining(other.tx)
    await expect(joined.put(5 as never)).rejects.toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT' })
    await expect(joined.put(SHORT, { length: 4 })).rejects.toMatchObject({ code: 'ERR_BLOB_LENGTH_MISMATCH' })
    await expect(joined.put(SHORT, { expect: `blake3:${'0'.repeat(64)}` })).rejects.toMatchObject({
      code: 'ERR_BLOB_KEY_MISMATCH'
    })
    await expect(joined.put(SHORT, { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no')
    await bench.query('ALTER TABLE $.entries ADD CONSTRAINT no_more CHECK (length < 5)')
    const error = await failure(joined.put(Buffer.from('a secret of mine')))
    expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', cause: { code: '23514' } })
    const said = JSON.stringify([error, error.cause, Object.getOwnPropertyNames(error.cause)]) + error.cause.message
    expect(said).not.toContain(Buffer.from('a secret').toString('base64').slice(0, 8))
    expect(Object.getOwnPropertyNames(error.cause)).not.toContain('parameters')
    await failure(other.commit())
    expect(await bench.entries()).toEqual([])
  })

  it('repairs nothing: a blob whose bytes are not all there is refused, and repaired by a put outside', async () => {
    const bench = await Bench.of('postgres + local')
    const { store, sql } = bench
    await (await store.put(SHORT)).release()
    await bench.query("UPDATE $.entries SET body = 'x'")
    const other = await transaction(sql)
    const joined = await store.joining(other.tx)
    expect(await failure(joined.put(SHORT))).toBeInstanceOf(CorruptBlobError)
    expect(await store.put(SHORT)).toMatchObject({ created: true })
    expect(await joined.put(SHORT)).toMatchObject({ created: false })
    await other.commit()
  })

  it('needs of the role of the transaction the rights that the guide names, and no more', async () => {
    const bench = await Bench.of('postgres + local')
    const { store, database } = bench
    const candidate = await bench.unprotected(Buffer.from('a candidate'))
    const other = await bench.another()
    const nothing = other.protect({ name: 'none', live: () => [] })
    expect(await other.sweep()).toMatchObject({ candidatesStaged: 1 })
    nothing.remove()
    const role = await freshRole(database)
    onTestFinished(() => role.drop())
    const rights = [
      'USAGE ON SCHEMA alkblobs',
      'SELECT ON alkblobs.meta',
      'SELECT, INSERT, UPDATE ON alkblobs.entries',
      'SELECT, UPDATE, DELETE ON alkblobs.stages',
      'SELECT, UPDATE ON alkblobs.gc_window'
    ]
    const client = driver(database.url, { max: 1, user: role.name, password: role.password })
    onTestFinished(() => client.end({ timeout: 1 }))
    const put = () =>
      client.begin(async tx => {
        const joined = await store.joining(tx)
        for (const content of [SHORT, LONG, Buffer.from('a candidate')]) await joined.put(content)
      })
    for (const right of rights) {
      expect(await failure(put())).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'denied' })
      await database.query(`GRANT ${right} TO ${role.name}`)
    }
    await put()
    expect(await bench.entries()).toHaveLength(3)
    expect(await bench.query('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: true }])
    expect(await store.has(candidate)).toBe(true)
  })

  it('takes part in the transaction of a client with settings of its own', async () => {
    const bench = await Bench.of('postgres + local')
    const { store, database } = bench
    const strange = driver(database.url, {
      max: 1,
      transform: { ...driver.camel, undefined: null },
      types: { bytea: { to: 17, from: [17], serialize: () => 'wrong', parse: () => 'wrong' } },
      connection: { search_path: 'nowhere', bytea_output: 'escape', TimeZone: 'Asia/Tokyo' }
    })
    onTestFinished(() => strange.end({ timeout: 1 }))
    const unprepared = driver(database.url, { max: 1, prepare: false })
    onTestFinished(() => unprepared.end({ timeout: 1 }))
    for (const [i, client] of [strange, unprepared].entries()) {
      await client.begin(async tx => {
        const joined = await store.joining(tx)
        for (const content of [SHORT, LONG]) expect(await joined.put(content)).toMatchObject({ created: i === 0 })
      })
    }
    for (const content of [SHORT, LONG]) expect(await store.put(content)).toMatchObject({ created: false })
    expect(await store.verify()).toMatchObject({ entries: 2, clean: true })
  })
})

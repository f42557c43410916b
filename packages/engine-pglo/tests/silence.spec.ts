// A server that does not answer any more costs every method of a body its patience, and nothing else: none of them hangs.
import type { BodyWriter } from '@alkblobs/core/engine'
import { expect, it } from 'vitest'
import { SilentWay } from './silent-way.js'
import {
  call,
  claimed,
  database,
  exclusive,
  failure,
  holder,
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
  sooner,
  terminate,
  waitingWriter,
  within
} from './support.js'

/** What `create` is given, and so every method of its writer. */
const PATIENCE_MS = 2_500
/** With a rollback and a goodbye that nobody answers either: a second for each. */
const END_MS = PATIENCE_MS + 2_500

type Step = (writer: BodyWriter) => Promise<unknown>
const write: Step = writer => writer.write(pattern(3 * MIB))
const seal: Step = writer => writer.seal(keyOf(pattern(1)))
const discard: Step = writer => writer.discard()

onServer('a server that falls silent', () => {
  it.each<[name: string, length: number, step: Step, kind: string | undefined]>([
    ['before a body has its transaction, fails its write', MIB, write, 'transient'],
    ['in the transaction of a body, fails its write', 2 * MIB, write, 'transient'],
    ['before a body of one window is sealed, fails its seal', 10, seal, 'transient'],
    ['before the transaction of a body is committed, fails its seal', 2 * MIB, seal, 'transient'],
    ['does not keep a body from being discarded', 2 * MIB, discard, undefined]
  ])('%s', async (_, length, step, kind) => {
    const db = await database()
    const way = await SilentWay.to(db)
    const { engine, bodies } = await claimed(way)
    const stage = newStage()
    const writer = await bodies.create(stage, {}, within(PATIENCE_MS))
    await writer.write(pattern(length))
    if (length > MIB) await waitingWriter(db)
    way.fallSilent()
    expect(await sooner(END_MS, failure(engine, step(writer)))).toBe(kind)
    // Whether something is there that must go, only the server knows.
    await sooner(END_MS, failure(engine, writer.discard()))
    way.heal()
    await writer.discard()
    expect(await bodies.drop([stage], call)).toEqual([{ what: stage }])
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
    await putBody(bodies, [pattern(2 * MIB)])
  })

  it('does not keep a store from being closed, though it holds the pool alone', async () => {
    const db = await database()
    const way = await SilentWay.to(db)
    const { engine, bodies } = await open(way)
    await bodies.claim(exclusive, call)
    way.fallSilent()
    await sooner(3_000, engine.close())
  })

  it('does not keep an exclusive claim waiting for longer than its deadline', async () => {
    const db = await database()
    const way = await SilentWay.to(db)
    const { engine, bodies } = await open(way)
    way.fallSilentAt('pg_try_advisory_lock')
    expect(await sooner(END_MS, failure(engine, bodies.claim(exclusive, within(PATIENCE_MS))))).toBe('transient')
    expect(way.isSilent).toBe(true)
  })

  it('does not keep a lost exclusive claim from being taken again for longer than the deadline', async () => {
    const db = await database()
    const way = await SilentWay.to(db)
    const { engine, bodies } = await open(way)
    await bodies.claim(exclusive, call)
    const locator = await putBody(bodies, [pattern(10)])
    way.fallSilentAt('pg_try_advisory_lock')
    await terminate(db, (await holder(db)) as number)
    // Until the end of the session has arrived here, a drop needs no lock.
    const stages = [newStage()]
    while (!way.isSilent) {
      const [result] = await sooner(END_MS, bodies.drop(stages, within(PATIENCE_MS)))
      if (way.isSilent) expect(engine.classify(result?.error)).toBe('transient')
    }
    way.heal()
    expect(await readRange(bodies, locator)).toEqual(pattern(10))
  })
})

/** A body store whose every call is a step; a read is one, however many chunks it has. */
import type { BodyStore, BodyWriter, Locator, StageId } from '@alkblobs/core/engine'
import { stageOf } from './durable/bodies.js'
import type { Resource } from './footprint.js'
import { Caller, type Scheduling } from './scheduled-catalog.js'
import { telling } from './telling.js'

export function scheduledBodies(inner: BodyStore, how: Scheduling): BodyStore {
  const caller = new Caller(how)
  return {
    claimed: call => caller.step('claimed', '', { reads: ['claim'] }, () => inner.claimed(call)),
    claim: (claim, call) => caller.step('claim', '', { writes: ['claim'] }, () => inner.claim(claim, call)),
    create: async (stage, hint, call) => {
      const effect = () => inner.create(stage, hint, call)
      const writer = await caller.step('create', stage, { writes: [ofBody(stage)] }, effect, () => 'made')
      return scheduledWriter(writer, stage, caller)
    },
    async *read(locator, range, call) {
      const whole = () => all(inner.read(locator, range, call))
      const tell = (chunks: readonly Uint8Array[]) => `${chunks.reduce((sum, { length }) => sum + length, 0)} bytes`
      yield* await caller.step('read body', locator, { reads: [ofBody(locator)] }, whole, tell)
    },
    length: (locator, call) =>
      caller.step('length', locator, { reads: [ofBody(locator)] }, () => inner.length(locator, call)),
    drop: (what, call) =>
      caller.step('drop', what.join(), { writes: what.map(ofBody) }, () => inner.drop(what, call), telling.drop),
    scan: (after, limit, call) =>
      caller.step('scan', '', { reads: ['body'] }, () => inner.scan(after, limit, call), telling.scan)
  }
}

function scheduledWriter(inner: BodyWriter, stage: StageId, caller: Caller): BodyWriter {
  const writes = [ofBody(stage)]
  return {
    write: chunk => caller.step('write', stage, { writes }, () => inner.write(chunk)),
    seal: key => caller.step('seal', stage, { writes }, () => inner.seal(key)),
    discard: () => caller.step('discard body', stage, { writes }, () => inner.discard())
  }
}

function ofBody(what: Locator | StageId): Resource {
  return `body:${stageOf(what)}`
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = []
  for await (const item of items) gathered.push(item)
  return gathered
}

// Receipts and writers that became unreachable; run with --expose-gc. `case` says which.

import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as passed } from 'node:timers/promises'
import { tapped } from '@alkblobs/conformance'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import { fileOf, given, rootOf, say } from '../../processes/workers/pool.mjs'

const { folder } = given

/** Tells of every call that reaches an engine once it has been closed; pins take a moment, as on a busy file. */
const late = []
function watched(definition) {
  let isClosed = false
  const noting = inner =>
    new Proxy(inner, {
      get(target, name) {
        const value = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return async (...args) => {
          if (isClosed) late.push(name)
          if (name === 'pin') await passed(5)
          return await value.apply(target, args)
        }
      }
    })
  return tapped(definition, {
    catalog: inner => noting(inner),
    engine: inner => ({
      async close() {
        await inner.close()
        isClosed = true
      }
    })
  })
}

const open = (options = {}) =>
  openStore({
    kv:
      given.case === 'receipts'
        ? watched(sqlite({ file: fileOf(folder), durability: 'os' }))
        : sqlite({ file: fileOf(folder), durability: 'os' }),
    large: local({ root: rootOf(folder), openMax: 8 }),
    threshold: 10,
    ...options
  })

/** Lets everything unreachable be found. */
async function collect() {
  for (let time = 0; time < 5; time++) {
    globalThis.gc()
    await passed(10)
  }
}
const openFiles = () =>
  readdirSync('/proc/self/fd').filter(name => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith(`${folder}/`)
    } catch {
      // Closed between the listing and the look.
      return false
    }
  }).length

const cases = {
  // Each ends, without its holder, as a release; and none reaches for the medium once the store has closed.
  async receipts() {
    const store = await open()
    const forget = async () => {
      for (let at = 0; at < 50; at++) await store.put(`content ${at}`)
    }
    await forget()
    const held = store.pins().length
    await collect()
    for (let time = 0; time < 100 && store.pins().length > 0; time++) await collect()
    say({ held, afterwards: store.pins().length })
    await forget()
    globalThis.gc()
    await new Promise(setImmediate)
    await store.close()
    await passed(150)
    say({ late, openFiles: process.platform === 'linux' ? openFiles() : 0 })
  },
  // More of them than there are descriptors to go round.
  async writers() {
    const store = await open({ operationTimeoutMs: 1_000, stageTtlMs: 300 })
    const forget = async () => {
      for (let at = 0; at < 6; at++) await store.writer().write(new Uint8Array(2 << 20))
    }
    await forget()
    for (let time = 0; time < 100 && (await store.usage()).stages > 0; time++) await collect()
    const { stages } = await store.usage()
    say({
      stages,
      put: await store.put(new Uint8Array(1 << 20)).then(
        ({ length }) => length,
        error => error.code
      )
    })
    await store.close()
  },
  // Only the stream of a writer is kept, and it goes on.
  async writables() {
    const store = await open()
    const writing = (() => store.writer().writable)().getWriter()
    for (let at = 0; at < 10; at++) {
      await writing.write(new Uint8Array(100_000).fill(at))
      await collect()
    }
    say({
      close: await writing.close().then(
        () => 'committed',
        error => error.code
      )
    })
    say({ entries: (await store.usage()).entries })
    await store.close()
  }
}
await cases[given.case]()

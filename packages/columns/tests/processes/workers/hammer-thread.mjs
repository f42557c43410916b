// One thread of a hammer: does its task and answers what it counted. An error that a caller would see ends the test.
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { contentOf, inLanes, openPool, streamOf } from './pool.mjs'

const { folder, task, rounds, thread, lanes, length, contents } = workerData
const names = Array.from({ length: contents }, (_, n) => `content ${n}`)

const tasks = {
  /** Puts every content once, at about the time at which all other threads put it. */
  async sameContents(store) {
    const counts = { puts: 0, created: 0 }
    await inLanes(names, lanes, async (name, index) => {
      const bytes = contentOf(name, length)
      const receipt = await store.put((index + thread) % 2 === 0 ? bytes : streamOf(bytes))
      counts.puts++
      if (receipt.created) counts.created++
      const blob = await store.get(receipt.key)
      if (Buffer.compare(await blob.bytes(), bytes) !== 0) throw new Error(`${name} reads as other bytes`)
      await receipt.release()
    })
    return counts
  },
  /** Each round reads and writes the same few rows: put, pin, delete. */
  async putPinDelete(store) {
    const counts = { puts: 0, created: 0, pins: 0, deleted: 0, absent: 0, refused: 0 }
    await inLanes(Array.from({ length: rounds }), lanes, async (_, round) => {
      const receipt = await store.put(contentOf(names[(round + thread) % contents], length))
      counts.puts++
      if (receipt.created) counts.created++
      const pin = await store.pin(receipt.key)
      if (pin === undefined) throw new Error('a key held by a put could not be pinned')
      counts.pins++
      await receipt.release()
      await pin.release()
      try {
        counts[(await store.delete(receipt.key)) ? 'deleted' : 'absent']++
      } catch (error) {
        if (error.code !== 'ERR_BLOB_GC_REFUSED' || error.reason !== 'pinned') throw error
        counts.refused++
      }
    })
    return counts
  }
}

const store = await openPool(folder)
parentPort.postMessage('ready')
await once(parentPort, 'message')
const counts = await tasks[task](store)
await store.close()
parentPort.postMessage(counts)

/** Processor time an operation takes, all threads of the process together: the figure that other work on the machine disturbs least. */
import { closeSync, openSync, readSync } from 'node:fs'
import { freshKeys, freshList, freshStream, spreadNumbers } from '../content.mjs'
import { hashBytes } from '../peers/hash-alone.mjs'
import { writeStream } from '../peers/plain-files.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { openTable } from '../peers/table-of-blobs.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024
const RANGE_LENGTH = 64 * 1024
const BODY_LENGTH = 64 * 1024 * 1024
const IN_FLIGHT = 64
const BATCH = 100
const COUNT = 4_096
const SERIAL = 2_048
const READS = 16_384

export const processor = {
  id: 'processor',
  needs: 'growth',
  unit: 'us',
  titleOf: () => 'of processor an operation, all threads together',
  async contestants({ site, closing }) {
    const store = await openPool(site.folder('pool'))
    const table = openTable(`${site.folder('sqlite')}/blobs.db`)
    closing(() => store.close())
    closing(() => table.close())
    return [...puts(store, table), ...(await gets(store, table)), ...(await ranges(site, store, closing))]
  },
  ratiosOf: () => []
}

function puts(store, table) {
  const put = content => putAndRelease(store, content)
  const putBatch = (contents, keys, from) =>
    table.putAll(keys.slice(from, from + BATCH), contents.slice(from, from + BATCH))
  return [
    contestant('put', `put, ${IN_FLIGHT} in flight`, () => {
      const contents = freshList(COUNT, LENGTH)
      return spent(COUNT, () => perSecond({ count: COUNT, width: IN_FLIGHT }, i => put(contents[i])))
    }),
    contestant('raw-put', `better-sqlite3, transactions of ${BATCH}`, () => {
      const [contents, keys] = [freshList(COUNT, LENGTH), freshKeys(COUNT)]
      return spent(COUNT, () => {
        for (let from = 0; from < COUNT; from += BATCH) putBatch(contents, keys, from)
      })
    }),
    contestant('put-serial', 'put, one after the other', () => {
      const contents = freshList(SERIAL, LENGTH)
      return spent(SERIAL, () => perSecond({ count: SERIAL }, i => put(contents[i])))
    }),
    contestant('raw-put-serial', 'better-sqlite3, one a transaction', () => {
      const [contents, keys] = [freshList(SERIAL, LENGTH), freshKeys(SERIAL)]
      return spent(SERIAL, () => {
        for (let i = 0; i < SERIAL; i++) table.put(keys[i], contents[i])
      })
    })
  ]
}

async function gets(store, table) {
  const contents = freshList(2_048, LENGTH)
  const ids = freshKeys(contents.length)
  table.putAll(ids, contents)
  const keys = []
  await perSecond({ count: contents.length, width: 256 }, async i => {
    keys[i] = await putAndRelease(store, contents[i])
  })
  const order = [...spreadNumbers(READS, contents.length)]
  const get = async i => (await store.get(keys[order[i]])).bytes()
  const all = work => () => spent(READS, () => order.forEach(work))
  return [
    contestant('get', 'get, 16 in flight, verified', () =>
      spent(READS, () => perSecond({ count: READS, width: 16 }, get))
    ),
    contestant(
      'raw-get',
      'better-sqlite3',
      all(i => table.get(ids[i]))
    ),
    contestant(
      'hash',
      'hashing 16 KiB alone',
      all(i => hashBytes(contents[i]))
    )
  ]
}

async function ranges(site, store, closing) {
  const blob = await store.get(await putAndRelease(store, freshStream(BODY_LENGTH)))
  const path = `${site.folder('files')}/whole`
  await writeStream(path, freshStream(BODY_LENGTH))
  const descriptor = openSync(path, 'r')
  closing(() => closeSync(descriptor))
  const starts = [...spreadNumbers(READS, BODY_LENGTH - RANGE_LENGTH)]
  const slice = i => blob.slice(starts[i], starts[i] + RANGE_LENGTH).bytes()
  const pread = start => readSync(descriptor, Buffer.allocUnsafeSlow(RANGE_LENGTH), 0, RANGE_LENGTH, start)
  return [
    contestant('range', 'a slice of 64 KiB', () => spent(READS, () => perSecond({ count: READS }, slice))),
    contestant('raw-range', 'pread of 64 KiB, blocking', () => spent(READS, () => starts.forEach(pread)))
  ]
}

function contestant(id, name, run) {
  return { id, name, note: '', run }
}

/** Microseconds of processor that each of `count` operations took. */
async function spent(count, work) {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

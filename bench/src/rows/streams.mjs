/** Large blobs, written from a stream and read back whole. */

import { Blake3Hasher } from '@napi-rs/blake-hash'
import { freshStream } from '../content.mjs'
import { openCache } from '../peers/cache-of-npm.mjs'
import { readStream, writeStream } from '../peers/plain-files.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { megabytesPerSecond } from '../rounds.mjs'

const sizeOf = ({ scale }) => `${scale.streamLength / 2 ** 20} MiB`
const roundsOf = ({ scale }) => scale.streamRounds

export const putStream = {
  id: 'put-stream',
  unit: 'MB/s',
  titleOf: bench => `a stream of ${sizeOf(bench)} in chunks of 64 KiB, new content`,
  roundsOf,
  async contestants({ site, scale, closing }) {
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const files = site.folder('files')
    const cache = openCache(site.folder('cacache'))
    const { streamLength } = scale
    const measure = put => () => megabytesPerSecond(streamLength, () => put(freshStream(streamLength)))
    let written = 0
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs sqlite + local',
        note: 'durable, hashed, pinned and released',
        run: measure(stream => putAndRelease(store, stream))
      },
      {
        id: 'files',
        name: 'a file by hand',
        note: 'durable, hashed; no dedup, no catalog',
        run: measure(stream => writeStream(`${files}/${++written}`, stream))
      },
      {
        id: 'cacache',
        name: 'cacache stream',
        note: 'hashed; not synced: a power loss may lose or tear it',
        leavesDirty: true,
        run: measure(stream => cache.putStream(stream))
      },
      { id: 'hash', name: 'hashing the stream alone', note: 'a limit; keeps nothing', run: measure(hashStream) }
    ]
  },
  ratiosOf: () => [
    {
      id: 'put-stream/file',
      value: round => round.alkblobs.figure / round.files.figure,
      atLeast: 0.9,
      against: 'a file by hand with the same hash, synced'
    },
    {
      id: 'put-stream/cacache',
      value: round => round.alkblobs.figure / round.cacache.figure,
      atLeast: 2.5,
      against: 'cacache, which does not sync'
    }
  ]
}

export const getStream = {
  id: 'get-stream',
  unit: 'MB/s',
  titleOf: bench => `${sizeOf(bench)} read whole, page cache warm`,
  roundsOf,
  async contestants({ site, scale, closing }) {
    const { streamLength } = scale
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const file = `${site.folder('files')}/whole`
    const cache = openCache(site.folder('cacache'))
    const key = await putAndRelease(store, freshStream(streamLength))
    await writeStream(file, freshStream(streamLength))
    const digest = await cache.putStream(freshStream(streamLength))
    const measure = get => () => megabytesPerSecond(streamLength, get)
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs sqlite + local',
        note: 'verified',
        run: measure(async () => drain(await store.get(key)))
      },
      {
        id: 'files',
        name: 'a file by hand',
        note: 'hashed, compared with nothing',
        run: measure(() => readStream(file))
      },
      { id: 'cacache', name: 'cacache stream by digest', note: 'verified', run: measure(() => cache.drain(digest)) }
    ]
  },
  ratiosOf: () => [
    {
      id: 'get-stream/file',
      value: round => round.alkblobs.figure / round.files.figure,
      atLeast: 0.85,
      against: 'a file by hand with the same hash'
    },
    {
      id: 'get-stream/cacache',
      value: round => round.alkblobs.figure / round.cacache.figure,
      atLeast: 2,
      against: 'cacache stream'
    }
  ]
}

async function hashStream(stream) {
  const hasher = new Blake3Hasher()
  for await (const chunk of stream) hasher.update(chunk)
  return hasher.digestBuffer()
}

async function drain(blob) {
  let length = 0
  for await (const chunk of blob) length += chunk.length
  return length
}

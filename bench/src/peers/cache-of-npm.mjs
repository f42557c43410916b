/**
 * cacache, the content store of npm, at its best: SHA-256, which it hashes faster than its default where processors have
 * instructions for it, and reads by digest, past its index.
 */
import { pipeline } from 'node:stream/promises'
import cacache from 'cacache'

const OPTIONS = { algorithms: ['sha256'] }

export function openCache(folder) {
  let named = 0
  const digestOf = integrity => integrity.toString()
  return {
    async put(bytes) {
      return digestOf(await cacache.put(folder, `k${++named}`, bytes, OPTIONS))
    },
    get: digest => cacache.get.byDigest(folder, digest),
    async putStream(stream) {
      const into = cacache.put.stream(folder, `k${++named}`, OPTIONS)
      const integrity = new Promise(resolve => into.once('integrity', resolve))
      await pipeline(stream, into)
      return digestOf(await integrity)
    },
    /** Reads all of it and answers the length. */
    async drain(digest) {
      let length = 0
      const from = cacache.get.stream.byDigest(folder, digest)
      from.on('data', chunk => {
        length += chunk.length
      })
      await new Promise((resolve, reject) => from.once('end', resolve).once('error', reject))
      return length
    }
  }
}

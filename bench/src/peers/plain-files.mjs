/** Files by hand, at their best: large windows, hashing beside writing, syncs begun ahead of the end, and a durable name. */
import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Blake3Hasher } from '@napi-rs/blake-hash'

const WINDOW = 1024 * 1024
const SYNC_EVERY = 8 * WINDOW

/** Writes a small file so that it and its name survive a power loss. */
export async function writeDurably(path, bytes) {
  const file = await open(path, 'wx')
  try {
    await file.write(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
  await syncFolder(dirname(path))
}

/** Streams into a file with a hash, durably; answers the digest. One window is written while the next is filled and hashed. */
export async function writeStream(path, stream) {
  const hasher = new Blake3Hasher()
  const file = await open(`${path}.part`, 'wx')
  let windows = [Buffer.allocUnsafeSlow(WINDOW), Buffer.allocUnsafeSlow(WINDOW)]
  let filled = 0
  let written = 0
  let writing = Promise.resolve()
  let syncing = Promise.resolve()
  const send = async () => {
    const bytes = windows[0].subarray(0, filled)
    hasher.update(bytes)
    await writing
    writing = file.write(bytes)
    windows = [windows[1], windows[0]]
    written += filled
    filled = 0
    if (written % SYNC_EVERY === 0) syncing = Promise.all([syncing, writing.then(() => file.datasync())])
  }
  for await (const chunk of stream) {
    windows[0].set(chunk, filled)
    filled += chunk.length
    if (filled === WINDOW) await send()
  }
  if (filled > 0) await send()
  await writing
  await syncing
  await file.sync()
  await file.close()
  await rename(`${path}.part`, path)
  await syncFolder(dirname(path))
  return hasher.digestBuffer()
}

/** Reads a file whole, in windows, with a hash; answers the digest. One window is read while the last one is hashed. */
export async function readStream(path) {
  const hasher = new Blake3Hasher()
  const file = await open(path, 'r')
  const read = at => file.read(Buffer.allocUnsafeSlow(WINDOW), 0, WINDOW, at)
  let at = 0
  for (let reading = read(0); ; ) {
    const { bytesRead, buffer } = await reading
    if (bytesRead === 0) break
    at += bytesRead
    reading = read(at)
    hasher.update(buffer.subarray(0, bytesRead))
  }
  await file.close()
  return hasher.digestBuffer()
}

async function syncFolder(folder) {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  await handle.sync()
  await handle.close()
}

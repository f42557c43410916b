/** The disk and nothing else: bytes written in place and synced. What no durable store can be faster than; it keeps nothing to be found. */
import { closeSync, fdatasyncSync, fsyncSync, openSync, writeSync } from 'node:fs'

const MIB = 1024 * 1024
/** The file is written round and round, so that no sync has to grow it. */
const RING_LENGTH = 16 * MIB

export function openDisk(folder) {
  const descriptor = openSync(`${folder}/ring`, 'w')
  for (let at = 0; at < RING_LENGTH; at += MIB) writeSync(descriptor, Buffer.alloc(MIB, 1), 0, MIB, at)
  fsyncSync(descriptor)
  let at = 0
  return {
    /** One write, one sync. At most 1 MiB. */
    put(bytes) {
      writeSync(descriptor, bytes, 0, bytes.length, at)
      fdatasyncSync(descriptor)
      at = (at + bytes.length) % (RING_LENGTH - MIB)
    },
    close: () => closeSync(descriptor)
  }
}

/** Windows of 64 KiB at random places of one large blob. */
import { closeSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { freshStream, spreadNumbers } from '../content.mjs'
import { writeStream } from '../peers/plain-files.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 64 * 1024

export const range = {
  id: 'range',
  unit: 'ranges/s',
  titleOf: ({ scale }) => `64 KiB out of ${scale.streamLength / 2 ** 20} MiB, at random, page cache warm`,
  async contestants({ site, scale, closing }) {
    const { streamLength, ranges } = scale
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const blob = await store.get(await putAndRelease(store, freshStream(streamLength)))
    const path = `${site.folder('files')}/whole`
    await writeStream(path, freshStream(streamLength))
    const descriptor = openSync(path, 'r')
    const handle = await open(path, 'r')
    closing(() => closeSync(descriptor))
    closing(() => handle.close())
    const measure = read => {
      const starts = [...spreadNumbers(ranges, streamLength - LENGTH)]
      return perSecond({ count: ranges }, i => read(starts[i]))
    }
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs slice',
        note: 'a part is not verified; keeps the file open for the next',
        run: () => measure(start => blob.slice(start, start + LENGTH).bytes())
      },
      {
        id: 'blocking',
        name: 'pread, blocking',
        note: 'keeps the file open; blocks the event loop',
        run: () => measure(start => readSync(descriptor, Buffer.allocUnsafeSlow(LENGTH), 0, LENGTH, start))
      },
      {
        id: 'pooled',
        name: 'pread, thread pool',
        note: 'keeps the file open',
        run: () => measure(start => handle.read(Buffer.allocUnsafeSlow(LENGTH), 0, LENGTH, start))
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'range',
      value: round => round.alkblobs.figure / round.blocking.figure,
      atLeast: 0.8,
      against: 'blocking pread on an open file, the faster of the two'
    }
  ]
}

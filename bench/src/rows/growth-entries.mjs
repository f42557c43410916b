/** What looking over a whole pool costs, over the number of its entries. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { inChild } from '../child.mjs'
import { fillPool } from '../peers/pool.mjs'

const LOOK = import.meta.resolve('../children/look-at-pool.mjs')
const LOOKS = ['list', 'usage', 'verify', 'sweep', 'open']
const LENGTH = 16

const idOf = (look, entries) => `${look}${entries}`

export const growthEntries = {
  id: 'growth-entries',
  needs: 'growth',
  unit: 'ms',
  titleOf: () => 'one look over a whole pool of tiny blobs, each by a new process',
  warmUp: false,
  roundsOf: () => 1,
  async contestants({ site, scale }) {
    const pools = []
    for (const entries of scale.growthEntries) pools.push(await fill(site, entries))
    return pools.flatMap(pool =>
      LOOKS.map(look => ({
        id: idOf(look, pool.entries),
        name: `${look}, ${pool.entries.toLocaleString('en')} entries`,
        note: look === 'open' ? 'open and one look for a key' : '',
        run: () => inChild(LOOK, { ...pool, look })
      }))
    )
  },
  ratiosOf: () => [],
  seriesOf: ({ scale }) => ({
    title: 'Time an entry over the size of the pool',
    x: 'entries',
    y: 'microseconds an entry',
    lines: LOOKS.filter(look => look !== 'open').map(look => ({
      name: look,
      points: scale.growthEntries.map(entries => ({ x: entries, id: idOf(look, entries), scale: 1000 / entries }))
    }))
  })
}

async function fill(site, entries) {
  const folder = site.folder('pool')
  const keys = `${site.folder('keys')}/keys`
  const descriptor = openSync(keys, 'w')
  await fillPool(folder, { entries, length: LENGTH, onDigest: digest => writeSync(descriptor, digest) })
  closeSync(descriptor)
  return { entries, folder, keys }
}

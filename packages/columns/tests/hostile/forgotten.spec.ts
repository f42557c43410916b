/** Holders that let go without saying so, in a process whose garbage collector comes when it is called. */
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../bad-input/stores.js'
import { said } from './children.js'

const forgotten = (what: string) =>
  said<object>('forgotten.mjs', { folder: temporaryFolder(), case: what }, { node: ['--expose-gc'] })

describe('what nobody can reach any more', () => {
  it('is released if it was a receipt, and never by a call to a closed engine', async () => {
    expect(await forgotten('receipts')).toEqual([
      { held: 50, afterwards: 0 },
      { late: [], openFiles: 0 }
    ])
  })

  it('is discarded if it was a writer, so that its place, descriptor and stage are free', async () => {
    expect(await forgotten('writers')).toEqual([{ stages: 0, put: 1 << 20 }])
  })

  it('is not a writer whose stream is still being written to', async () => {
    expect(await forgotten('writables')).toEqual([{ close: 'committed' }, { entries: 1 }])
  })
})

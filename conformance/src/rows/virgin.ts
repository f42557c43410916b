import { equal } from '../expect.js'
import { oracleOf } from '../factory.js'
import { over, row } from '../row.js'

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const virgin = (name: string, trait: 'root' | 'file' | 'schema', statement: string) =>
  row({
    name,
    statement,
    stamps: ['docs/spec/store-api.md#opening', 'docs/spec/engine-contract.md#catalog'],
    invariant: 'INV-7',
    needs: ['medium', trait],
    run: over(async (store, factory) => {
      const oracle = oracleOf(factory, store)
      const key = `blake3:${'00'.repeat(32)}`
      equal(await store.get(key), undefined, 'get')
      equal(await store.stat(key), undefined, 'stat')
      equal(await store.has(key), false, 'has')
      equal([...(await store.hasMany([key])).values()], [false], 'hasMany')
      for await (const entry of store.list()) equal(entry, undefined, 'list answers nothing')
      equal((await store.usage()).entries, 0, 'usage')
      equal(await store.pin(key), undefined, 'pin')
      equal(await store.delete(key), false, 'delete')
      equal((await store.why(key)).verdict, 'absent', 'why')
      equal(await oracle.exists(), false, 'nothing was created by asking')
      await store.put('now it is')
      equal(await oracle.exists(), true, 'the first put makes the pool')
    })
  })

const virginRoot = virgin(
  'virgin_store_reads_are_no_ops_on_a_fresh_root',
  'root',
  'Reads of a pool whose folder is not there yet answer "absent" and create nothing.'
)
const virginFile = virgin(
  'virgin_store_reads_are_no_ops_on_a_fresh_file',
  'file',
  'Reads of a pool whose database file is not there yet answer "absent" and create nothing.'
)

const virginSchema = virgin(
  'virgin_store_reads_are_no_ops_on_a_fresh_schema',
  'schema',
  'Reads of a pool whose schema is not there yet answer "absent" and create nothing.'
)

export const virginRows = [virginRoot, virginFile, virginSchema]

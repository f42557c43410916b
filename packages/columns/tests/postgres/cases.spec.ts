import { expect, it } from 'vitest'
import { onServer, testPool } from './pools.js'
import { Wire } from './wire.js'

onServer('O23', () => {
  it('a sweep whose way to the server is long has given its lock back when it ends', async () => {
    const pool = await testPool('postgres')
    const wire = await Wire.to(pool.db)
    const [far, near] = [await pool.open({ port: wire.port }), await pool.open()]
    for (const store of [far, near]) store.protect({ name: 'nothing', live: () => [] })
    await (await near.put('something')).release()
    await near.sweep()
    wire.lagMs = 20
    expect((await far.sweep()).aborted).toBeUndefined()
    expect((await near.sweep()).aborted).toBeUndefined()
  })
})

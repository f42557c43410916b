// The row of parity that concerns every proxy of a server at once. It stands apart from the others (`faults/toxics.spec.ts`), which run while
// other tests may have proxies on the same Toxiproxy.
import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { findProxy } from '../src/index.js'
import { Client, echo } from './place.js'

it('enables everything and removes every toxic when it is reset', async () => {
  const found = await findProxy({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => found.release())
  const at = await echo()
  const proxy = await found.faults.createProxy(`row-${randomUUID()}`, `${at.host}:${at.port}`)
  onTestFinished(() => proxy.delete())
  await proxy.add({ type: 'timeout', attributes: { timeout: 0 } })
  await proxy.disable()
  await found.faults.reset()
  expect(await proxy.state()).toMatchObject({ enabled: true, toxics: [] })
  const client = await Client.to(proxy)
  client.send('x')
  expect(`${await client.received(1)}`).toBe('x')
})

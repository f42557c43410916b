// What the proxy of this package can do beyond Toxiproxy: it counts, resets any connection, and waits for a trigger.
import { expect, it, onTestFinished } from 'vitest'
import { type FaultyProxy, findProxy, NoProxy, ProxyServer, TransportFaults } from '../src/index.js'
import { Client, echo, listen, pause } from './place.js'

async function proxyTo(at: { host: string; port: number }): Promise<FaultyProxy> {
  const server = await ProxyServer.start()
  onTestFinished(() => server.stop())
  return await (await TransportFaults.at(server.url)).createProxy('row', `${at.host}:${at.port}`)
}

it('counts what a toxic has met, dropped and closed', async () => {
  const proxy = await proxyTo(await echo())
  await proxy.add({ name: 'hole', type: 'timeout', stream: 'upstream', attributes: { timeout: 0 } })
  const client = await Client.to(proxy)
  client.send('12345')
  expect(await proxy.fired('hole')).toEqual({ links: 1, chunks: 1, bytesDropped: 5, closes: 0, resets: 0 })
  await proxy.add({ type: 'limit_data', attributes: { bytes: 0 } })
  expect(await proxy.counters('limit_data_downstream')).toEqual({
    links: 1,
    chunks: 0,
    bytesDropped: 0,
    closes: 0,
    resets: 0
  })
  await expect(proxy.fired('limit_data_downstream', 50)).rejects.toThrow('did nothing')
})

it('resets connections that are open already, and counts them', async () => {
  const proxy = await proxyTo(await echo())
  const clients = [await Client.to(proxy), await Client.to(proxy)]
  for (const client of clients) {
    client.send('x')
    await client.received(1)
  }
  expect(await proxy.links()).toBe(2)
  expect(await proxy.resetAll()).toBe(2)
  for (const client of clients) expect(await client.ended).toEqual({ code: 'ECONNRESET' })
  expect(await proxy.links()).toBe(0)
})

it('resets the server too', async () => {
  let code: string | undefined
  const at = await listen(socket => {
    socket.resume()
    socket.on('error', (error: NodeJS.ErrnoException) => {
      code = error.code
    })
  })
  const proxy = await proxyTo(at)
  const client = await Client.to(proxy)
  client.send('x')
  await pause(50)
  await proxy.resetAll()
  await client.ended
  await pause(50)
  expect(code).toBe('ECONNRESET')
})

it('lets a toxic begin at the nth byte', async () => {
  const proxy = await proxyTo(await echo())
  await proxy.add({ type: 'limit_data', attributes: { bytes: 2 }, trigger: { bytes: 10 } })
  const client = await Client.to(proxy)
  client.send('0123456')
  await client.received(7)
  client.send('789abcdef')
  await client.ended
  expect(`${Buffer.concat(client.chunks)}`).toBe('0123456789ab')
  expect(await proxy.counters('limit_data_downstream')).toMatchObject({ bytesDropped: 4, closes: 1 })
})

it('lets a toxic begin at a message of the server', async () => {
  const message = (type: string, text: string) => {
    const head = Buffer.alloc(5)
    head.write(type)
    head.writeInt32BE(text.length + 4, 1)
    return Buffer.concat([head, Buffer.from(text)])
  }
  // The letter inside of a message, or of its length, is none.
  const before = Buffer.concat([message('T', 'CCC'), message('D', 'C'.repeat(0x43))])
  const proxy = await proxyTo(await echo())
  await proxy.add({ type: 'timeout', attributes: { timeout: 0 }, trigger: { message: 'C' } })
  const client = await Client.to(proxy)
  // In pieces that fit no message.
  const bytes = Buffer.concat([before, message('C', 'COMMIT'), message('Z', 'I')])
  for (let at = 0; at < bytes.length; at += 3) {
    client.send(bytes.subarray(at, at + 3))
    await pause(2)
  }
  await proxy.fired('timeout_downstream')
  expect(Buffer.concat(client.chunks).equals(before)).toBe(true)
})

it('is found where nothing else is configured, and not where it is forced off', async () => {
  const at = { host: '127.0.0.1', port: 1 }
  const found = await findProxy(at, {})
  expect(found.kind).toBe('own')
  await found.release()
  await expect(findProxy(at, { ALKBLOBS_FAULTS_PROXY: 'off' })).rejects.toThrow(NoProxy)
  await expect(findProxy(at, { ALKBLOBS_FAULTS_PROXY: 'something' })).rejects.toThrow('may be url, docker, own or off')
  // An address that was given and does not answer is not replaced behind the user's back.
  await expect(findProxy(at, { TOXIPROXY_URL: 'http://127.0.0.1:1' })).rejects.toThrow(NoProxy)
})

// The rows of parity: what the proxy does is what Toxiproxy does. They run against whichever is there (`findProxy`).
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type FaultyProxy, type FoundProxy, findProxy, TransportApiError, TransportFaults } from '../../src/index.js'
import { Client, echo, listen, pause } from '../place.js'

let found: FoundProxy
beforeAll(async () => {
  // The rows need servers of this process, which the network of the container cannot reach.
  found = await findProxy({ host: '127.0.0.1', port: 0 })
})
afterAll(() => found.release())

async function proxyTo(at: { host: string; port: number }): Promise<FaultyProxy> {
  const proxy = await found.faults.createProxy(`row-${randomUUID()}`, `${at.host}:${at.port}`)
  onTestFinished(() => proxy.delete().catch(() => undefined))
  return proxy
}

async function statusOf(call: Promise<unknown>): Promise<number> {
  const error = await call.then(
    () => undefined,
    error => error
  )
  return error instanceof TransportApiError ? error.status : 200
}

describe('the API', () => {
  it('makes, changes, lists and removes proxies', async () => {
    const at = await echo()
    const proxy = await proxyTo(at)
    expect(proxy.port).toBeGreaterThan(0)
    expect(await proxy.state()).toMatchObject({
      name: proxy.name,
      upstream: `127.0.0.1:${at.port}`,
      enabled: true,
      toxics: []
    })
    expect(await found.faults.proxies()).toHaveProperty(proxy.name)
    expect(await statusOf(found.faults.createProxy(proxy.name, '127.0.0.1:1'))).toBe(409)
    expect(await statusOf(found.faults.createProxy('', '127.0.0.1:1'))).toBe(400)
    expect(await statusOf(found.faults.createProxy('no upstream', ''))).toBe(400)
    await proxy.delete()
    expect(await statusOf(proxy.state())).toBe(404)
  })

  it('names toxics by type and stream, once over both streams, and refuses what it does not know', async () => {
    const proxy = await proxyTo(await echo())
    expect(await proxy.add({ type: 'latency', attributes: { latency: 1 } })).toEqual({
      name: 'latency_downstream',
      type: 'latency',
      stream: 'downstream',
      toxicity: 1,
      attributes: { latency: 1, jitter: 0 }
    })
    const again = {
      name: 'latency_downstream',
      type: 'timeout',
      stream: 'upstream',
      attributes: { timeout: 0 }
    } as const
    expect(await statusOf(proxy.add(again))).toBe(409)
    expect(await statusOf(proxy.add({ type: 'earthquake' as 'latency', attributes: { latency: 1 } }))).toBe(400)
    expect(
      await statusOf(proxy.add({ type: 'latency', stream: 'sideways' as 'upstream', attributes: { latency: 1 } }))
    ).toBe(400)
    expect(await proxy.change('latency_downstream', { attributes: { latency: 7 } })).toMatchObject({
      attributes: { latency: 7, jitter: 0 }
    })
    expect(await proxy.toxics()).toHaveLength(1)
    expect(await statusOf(proxy.remove('nothing'))).toBe(404)
    await proxy.remove('latency_downstream')
    expect(await proxy.toxics()).toEqual([])
  })

  it('refuses browsers', async () => {
    const answer = await fetch(new URL('/proxies', found.faults.url), { headers: { 'user-agent': 'Mozilla/5.0' } })
    expect(answer.status).toBe(403)
  })

  it('answers with the status of each kind of call', async () => {
    const at = await echo()
    const name = `row-${randomUUID()}`
    const ask = async (method: string, path: string, body?: unknown) => {
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
      const answer = await fetch(new URL(path, found.faults.url), {
        method,
        headers: { 'user-agent': 'rows' },
        ...(text === undefined ? {} : { body: text })
      })
      await answer.text()
      return answer.status
    }
    const one = { name, listen: '127.0.0.1:0', upstream: `127.0.0.1:${at.port}` }
    expect(await ask('POST', '/proxies', one)).toBe(201)
    expect(await ask('POST', '/proxies', '{')).toBe(400)
    expect(await ask('GET', `/proxies/${name}`)).toBe(200)
    expect(await ask('PATCH', `/proxies/${name}`, { enabled: true })).toBe(200)
    const toxics = `/proxies/${name}/toxics`
    expect(await ask('POST', toxics, { type: 'latency', attributes: { latency: 1 } })).toBe(200)
    expect(await ask('POST', toxics, { type: 'latency', name: 'half', attributes: { latency: 1.5 } })).toBe(400)
    expect(await ask('GET', `${toxics}/latency_downstream`)).toBe(200)
    expect(await ask('GET', `${toxics}/latency_upstream`)).toBe(404)
    expect(await ask('PATCH', `${toxics}/latency_downstream`, { toxicity: 0.5 })).toBe(200)
    expect(await ask('PATCH', `${toxics}/latency_upstream`, { toxicity: 0.5 })).toBe(404)
    expect(await ask('DELETE', `${toxics}/latency_downstream`)).toBe(204)
    expect(await ask('POST', '/populate', [one])).toBe(201)
    expect(await ask('POST', '/populate', [{ name }])).toBe(400)
    expect(await ask('DELETE', `/proxies/${name}`)).toBe(204)
    expect(await ask('DELETE', `/proxies/${name}`)).toBe(404)
  })

  it('lists what is between the client and the server before what is between the server and the client', async () => {
    const proxy = await proxyTo(await echo())
    for (const [stream, name] of [
      ['downstream', 'first'],
      ['upstream', 'second'],
      ['downstream', 'third']
    ] as const) {
      await proxy.add({ name, type: 'latency', stream, attributes: { latency: 0 } })
    }
    expect((await proxy.toxics()).map(({ name }) => name)).toEqual(['second', 'first', 'third'])
    expect((await proxy.state()).toxics.map(({ name }) => name)).toEqual(['second', 'first', 'third'])
  })

  it('closes what is open when a proxy is told to lead elsewhere', async () => {
    const proxy = await proxyTo(await echo())
    const before = await Client.to(proxy)
    before.send('x')
    await before.received(1)
    const elsewhere = await listen(socket => void socket.write('elsewhere'))
    await found.faults.call('PATCH', `/proxies/${proxy.name}`, {
      enabled: true,
      listen: `127.0.0.1:${proxy.port}`,
      upstream: `127.0.0.1:${elsewhere.port}`
    })
    await before.ended
    const after = await Client.to(proxy)
    expect(`${await after.received(9)}`).toBe('elsewhere')
  })

  it('that does not answer is an error within the deadline', async () => {
    const at = await listen(() => undefined)
    await expect(TransportFaults.at(`http://127.0.0.1:${at.port}`, 200)).rejects.toThrow('no answer')
  })
})

describe('without toxics', () => {
  it('everything passes unchanged, both ways, and then the end', async () => {
    const bytes = randomBytes(3 * 1024 * 1024)
    const gathered: Buffer[] = []
    const at = await listen(socket => {
      socket.on('data', chunk => {
        gathered.push(chunk)
        if (gathered.reduce((sum, { length }) => sum + length, 0) === bytes.length) socket.end(Buffer.concat(gathered))
      })
    })
    const client = await Client.to(await proxyTo(at))
    client.socket.write(bytes)
    expect((await client.received(bytes.length)).equals(bytes)).toBe(true)
    expect(await client.ended).toEqual({ code: undefined })
  })

  it('a side that has said all has heard all: there is no half of a connection', async () => {
    let heard = ''
    const at = await listen(socket => {
      socket.on('data', chunk => {
        heard += chunk
      })
      socket.on('end', () => socket.write('too late'))
    })
    const client = await Client.to(await proxyTo(at))
    client.socket.end('all')
    await client.ended
    expect(client.length).toBe(0)
    expect(heard).toBe('all')
  })

  it('a client that reaches a dead server is connected, and then closed', async () => {
    const proxy = await proxyTo({ host: '127.0.0.1', port: 1 })
    await proxy.resetWhenClosed()
    const client = await Client.to(proxy)
    expect(await client.ended).toEqual({ code: undefined })
    expect(client.length).toBe(0)
  })
})

describe('a disabled proxy', () => {
  it('closes every connection, idle or not, and takes no more', async () => {
    const proxy = await proxyTo(await echo())
    const [idle, busy] = [await Client.to(proxy), await Client.to(proxy)]
    busy.send('x')
    await busy.received(1)
    expect(await proxy.disable()).toMatchObject({ enabled: false })
    expect(await idle.ended).toEqual({ code: undefined })
    expect(await busy.ended).toEqual({ code: undefined })
    await expect(Client.to(proxy)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await proxy.enable()
    const next = await Client.to(proxy)
    next.send('y')
    expect(`${await next.received(1)}`).toBe('y')
  })
})

describe('latency', () => {
  it('delays every chunk by that much at least, and keeps their order', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'latency', attributes: { latency: 150 } })
    const client = await Client.to(proxy)
    const start = performance.now()
    for (const text of ['a', 'b', 'c']) client.send(text)
    expect(`${await client.received(3)}`).toBe('abc')
    expect(performance.now() - start).toBeGreaterThanOrEqual(145)
  })

  it('that is removed lets go of what it held at once', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'latency', attributes: { latency: 60_000 } })
    const client = await Client.to(proxy)
    client.send('late')
    await pause(50)
    await proxy.remove('latency_downstream')
    expect(`${await client.received(4)}`).toBe('late')
  })
})

describe('bandwidth', () => {
  it('lets no more than its rate pass', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'bandwidth', attributes: { rate: 100 } })
    const client = await Client.to(proxy)
    const start = performance.now()
    client.send(Buffer.alloc(60_000))
    await client.received(60_000)
    // Six tenths of a second at that rate; wide on the one side that may be late.
    expect(performance.now() - start).toBeGreaterThan(60_000 / 120)
  })

  it('of nothing stops everything', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'bandwidth', stream: 'upstream', attributes: { rate: 0 } })
    const client = await Client.to(proxy)
    client.send('x')
    await pause(300)
    expect(client.length).toBe(0)
  })
})

describe('slow_close', () => {
  it('delays the end and nothing else', async () => {
    const proxy = await proxyTo(await listen(socket => socket.end('bye')))
    await proxy.add({ type: 'slow_close', attributes: { delay: 300 } })
    const start = performance.now()
    const client = await Client.to(proxy)
    await client.received(3)
    expect(performance.now() - start).toBeLessThan(250)
    await client.ended
    expect(performance.now() - start).toBeGreaterThanOrEqual(290)
  })
})

describe('timeout', () => {
  it('closes a connection on which nothing is said', async () => {
    const proxy = await proxyTo(await echo())
    const client = await Client.to(proxy)
    await proxy.add({ type: 'timeout', attributes: { timeout: 200 } })
    await client.ended
    expect(client.length).toBe(0)
  })

  it.each(['upstream', 'downstream'] as const)('does not hide that a side has gone (%s)', async stream => {
    let isGone: () => void = () => undefined
    const gone = new Promise<void>(resolve => {
      isGone = resolve
    })
    const proxy = await proxyTo(await listen(socket => void socket.resume().once('end', isGone)))
    await proxy.add({ type: 'timeout', stream, attributes: { timeout: 0 } })
    const client = await Client.to(proxy)
    client.socket.destroy()
    await gone
  })

  it('that never acted closes all the same when it is removed', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'timeout', toxicity: 0, attributes: { timeout: 0 } })
    const client = await Client.to(proxy)
    client.send('x')
    await client.received(1)
    await proxy.remove('timeout_downstream')
    await client.ended
  })

  it('of which no connection is to be struck any more lets through', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'timeout', attributes: { timeout: 0 } })
    const client = await Client.to(proxy)
    await proxy.change('timeout_downstream', { toxicity: 0 })
    client.send('x')
    expect(`${await client.received(1)}`).toBe('x')
  })

  it('drops everything, and closes after the silence', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'timeout', attributes: { timeout: 200 } })
    const client = await Client.to(proxy)
    client.send('lost')
    const start = performance.now()
    await client.ended
    expect(performance.now() - start).toBeGreaterThan(150)
    expect(client.length).toBe(0)
  })

  it('of nothing drops for ever, and closes when it is removed', async () => {
    const proxy = await proxyTo(await echo())
    const client = await Client.to(proxy)
    await proxy.add({ type: 'timeout', attributes: { timeout: 0 } })
    client.send('lost')
    await pause(150)
    expect(client.socket.closed).toBe(false)
    await proxy.remove('timeout_downstream')
    await client.ended
    expect(client.length).toBe(0)
  })
})

// O54: a reset is not what its name says on every connection.
describe('reset_peer', () => {
  it('does nothing to an idle connection', async () => {
    const proxy = await proxyTo(await echo())
    const client = await Client.to(proxy)
    await proxy.add({ type: 'reset_peer', attributes: { timeout: 0 } })
    await pause(300)
    expect(client.socket.closed).toBe(false)
  })

  it('closes a connection that was open already, at its next bytes, without a reset', async () => {
    const proxy = await proxyTo(await echo())
    const client = await Client.to(proxy)
    await proxy.add({ type: 'reset_peer', attributes: { timeout: 0 } })
    client.send('x')
    expect(await client.ended).toEqual({ code: undefined })
  })

  it('resets a connection that was opened later, at its first bytes', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'reset_peer', attributes: { timeout: 0 } })
    const client = await Client.to(proxy)
    client.send('x')
    expect(await client.ended).toEqual({ code: 'ECONNRESET' })
    expect(client.length).toBe(0)
  })

  it('that never acts still makes a later connection end by a reset, whatever closes it', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.resetWhenClosed()
    const client = await Client.to(proxy)
    client.send('x')
    await client.received(1)
    await proxy.disable()
    expect(await client.ended).toEqual({ code: 'ECONNRESET' })
  })

  it('that never acts makes a reset of a hanging up as well', async () => {
    const proxy = await proxyTo(await listen(socket => void socket.once('data', () => socket.end())))
    await proxy.resetWhenClosed()
    const client = await Client.to(proxy)
    client.send('x')
    expect(await client.ended).toEqual({ code: 'ECONNRESET' })
  })
})

describe('slicer', () => {
  it('cuts into pieces without losing any', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'slicer', attributes: { average_size: 500, delay: 2_000 } })
    const client = await Client.to(proxy)
    const bytes = randomBytes(20_000)
    client.send(bytes)
    expect((await client.received(bytes.length)).equals(bytes)).toBe(true)
    expect(client.chunks.length).toBeGreaterThanOrEqual(20_000 / 500 / 2)
  })
})

describe('limit_data', () => {
  it.each([0, 7])('lets exactly %i bytes pass, then closes', async bytes => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'limit_data', attributes: { bytes } })
    const client = await Client.to(proxy)
    client.send('0123456789')
    await client.ended
    expect(client.length).toBe(bytes)
  })
})

describe('limit_data of more than the sockets hold', () => {
  it('lets exactly that many bytes pass to a slow reader', async () => {
    const bytes = 8 * 1024 * 1024
    const proxy = await proxyTo(await listen(socket => void socket.write(randomBytes(2 * bytes))))
    await proxy.add({ type: 'limit_data', attributes: { bytes } })
    const client = await Client.to(proxy)
    client.socket.pause()
    await pause(200)
    client.socket.resume()
    await client.ended
    expect(client.length).toBe(bytes)
  })
})

describe('several toxics', () => {
  it('hand on the end of a direction as they hand on its bytes', async () => {
    const proxy = await proxyTo(await echo())
    await proxy.add({ type: 'limit_data', attributes: { bytes: 2 } })
    await proxy.add({ type: 'slow_close', attributes: { delay: 300 } })
    const client = await Client.to(proxy)
    client.send('xyz')
    await client.received(2)
    const start = performance.now()
    await client.ended
    expect(performance.now() - start).toBeGreaterThanOrEqual(250)
    expect(client.length).toBe(2)
  })
})

// O55: a removal under a client that does not read may hang in the API. Whoever asks has a deadline, and closes its connections first.
describe('a toxic that is removed while its connection is stalled', () => {
  it('is gone, or the call has failed in time', async () => {
    const proxy = await proxyTo(await listen(socket => void socket.write(Buffer.alloc(32 * 1024 * 1024))))
    await proxy.add({ type: 'bandwidth', attributes: { rate: 1_000_000 } })
    const client = await Client.to(proxy)
    client.socket.pause()
    await pause(200)
    const start = performance.now()
    const status = await statusOf(proxy.remove('bandwidth_downstream'))
    expect(performance.now() - start).toBeLessThan(11_000)
    expect([0, 200]).toContain(status)
    if (status === 200) expect(await proxy.toxics()).toEqual([])
    client.socket.destroy()
  }, 20_000)
})

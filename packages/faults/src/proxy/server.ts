/**
 * The HTTP API of Toxiproxy over proxies of this process: the subset that tests use, with its paths, answers and status codes, and four
 * calls of our own.
 *
 * | call of our own | answer |
 * |---|---|
 * | GET /proxies/{p}/links | how many connections are open |
 * | POST /proxies/{p}/links/reset | resets all of them, whenever they were opened; how many there were |
 * | GET /proxies/{p}/toxics/{t}/counters | what the toxic has done |
 * | `trigger` beside the attributes of a new toxic | until when it lets everything pass |
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ATTRIBUTES, type ToxicType, type Trigger } from '../transport/toxics.js'
import { addressOf, isStream, WireProxy } from './wire-proxy.js'

/** What /version answers: programs that know Toxiproxy know what to expect, and ours know that there is more. */
export const VERSION = '2.12.0-alkblobs'
const BODY_LENGTH_MAX = 1024 * 1024

interface Answer {
  readonly status: number
  readonly body?: unknown
}

/** What a call was refused for. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

type Given = Readonly<Record<string, unknown>>

export class ProxyServer {
  readonly #proxies = new Map<string, WireProxy>()
  readonly #server: Server
  #url = ''

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#serve(request).then(({ status, body }) => {
        const text = body === undefined ? '' : JSON.stringify(body)
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
        response.end(text)
      })
    })
  }

  /** Listens on a free port of the loopback address. */
  static async start(): Promise<ProxyServer> {
    const made = new ProxyServer()
    made.#server.listen(0, '127.0.0.1')
    await once(made.#server, 'listening')
    made.#url = `http://127.0.0.1:${(made.#server.address() as AddressInfo).port}`
    return made
  }

  get url(): string {
    return this.#url
  }

  /** Closes every connection and every port. */
  async stop(): Promise<void> {
    await Promise.all([...this.#proxies.values()].map(proxy => proxy.disable()))
    this.#proxies.clear()
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(request: IncomingMessage): Promise<Answer> {
    try {
      if (request.headers['user-agent']?.startsWith('Mozilla/')) throw new Refusal(403, 'User agent not allowed')
      const path = (request.url ?? '/').split('?')[0] as string
      const [, first = '', ...rest] = path.split('/').map(decodeURIComponent)
      const given = request.method === 'GET' || request.method === 'DELETE' ? {} : await bodyOf(request)
      return await this.#route(`${request.method} ${first}`, rest, given)
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 500
      return { status, body: { error: (error as Error).message, status } }
    }
  }

  async #route(call: string, path: readonly string[], given: Given): Promise<Answer> {
    const [name, part, toxic, more] = path
    if (name !== undefined && call.endsWith(' proxies')) {
      const method = call.split(' ')[0] as string
      return part === undefined
        ? await this.#proxyCall(method, this.#proxy(name), given)
        : partCall(`${method} ${part}`, this.#proxy(name), { toxic, more }, given)
    }
    switch (call) {
      case 'GET version':
        return { status: 200, body: { version: VERSION } }
      case 'GET proxies':
        return { status: 200, body: Object.fromEntries([...this.#proxies].map(([key, { state }]) => [key, state])) }
      case 'POST proxies':
        return { status: 201, body: (await this.#create(given)).state }
      case 'POST populate':
        return { status: 201, body: { proxies: await this.#populate(given) } }
      case 'POST reset':
        for (const proxy of this.#proxies.values()) {
          await proxy.enable()
          proxy.removeAll()
        }
        return { status: 204 }
      default:
        throw new Refusal(404, 'no such call')
    }
  }

  #proxy(name: string): WireProxy {
    const proxy = this.#proxies.get(name)
    if (proxy === undefined) throw new Refusal(404, 'proxy not found')
    return proxy
  }

  async #create(given: Given): Promise<WireProxy> {
    const { name, upstream } = checkFields(given)
    const { listen = '127.0.0.1:0', enabled = true } = given
    if (this.#proxies.has(name)) throw new Refusal(409, 'proxy already exists')
    const proxy = new WireProxy({ name, listen: asAddress(listen), upstream: asAddress(upstream) })
    if (enabled === true) await proxy.enable()
    this.#proxies.set(name, proxy)
    return proxy
  }

  async #populate(given: Given): Promise<unknown[]> {
    const made: unknown[] = []
    const all = Object.values(given) as Given[]
    // One that cannot be is the end of all of them, before any was touched.
    for (const wanted of all) checkFields(wanted)
    for (const wanted of all) {
      const before = typeof wanted.name === 'string' ? this.#proxies.get(wanted.name) : undefined
      const isSame = before?.state.listen === wanted.listen && before?.state.upstream === wanted.upstream
      if (before !== undefined && !isSame) {
        await before.disable()
        this.#proxies.delete(before.name)
      }
      made.push(before !== undefined && isSame ? before.state : (await this.#create(wanted)).state)
    }
    return made
  }

  async #proxyCall(method: string, proxy: WireProxy, given: Given): Promise<Answer> {
    if (method === 'GET') return { status: 200, body: proxy.state }
    if (method === 'DELETE') {
      this.#proxies.delete(proxy.name)
      await proxy.disable()
      return { status: 204 }
    }
    if (method !== 'PATCH' && method !== 'POST') throw new Refusal(405, 'no such method')
    const { listen, upstream, enabled } = given
    await proxy.move({
      ...(listen === undefined ? {} : { listen: asAddress(listen) }),
      ...(upstream === undefined ? {} : { upstream: asAddress(upstream) })
    })
    if (enabled === true) await proxy.enable()
    if (enabled === false) await proxy.disable()
    return { status: 200, body: proxy.state }
  }
}

function checkFields({ name, upstream }: Given): { readonly name: string; readonly upstream: string } {
  if (typeof name !== 'string' || name === '') throw new Refusal(400, 'missing required field: name')
  if (typeof upstream !== 'string' || upstream === '') throw new Refusal(400, 'missing required field: upstream')
  return { name, upstream }
}

interface Place {
  readonly toxic: string | undefined
  readonly more: string | undefined
}

function partCall(call: string, proxy: WireProxy, { toxic: name, more }: Place, given: Given): Answer {
  if (call === 'GET links') return { status: 200, body: { links: proxy.links } }
  if (call === 'POST links' && name === 'reset') return { status: 200, body: { links: proxy.reset() } }
  if (!call.endsWith(' toxics')) throw new Refusal(404, 'no such call')
  if (name === undefined) {
    if (call === 'GET toxics') return { status: 200, body: proxy.state.toxics }
    if (call === 'POST toxics') return { status: 200, body: addToxic(proxy, given) }
    throw new Refusal(405, 'no such method')
  }
  const toxic = proxy.toxic(name)
  if (toxic === undefined) throw new Refusal(404, 'toxic not found')
  if (call === 'GET toxics') return { status: 200, body: more === 'counters' ? toxic.counters : toxic }
  if (call === 'DELETE toxics') {
    proxy.remove(toxic)
    return { status: 204 }
  }
  const { attributes, toxicity } = given
  proxy.change(toxic, attributesOf(toxic.type, attributes, {}), toxicityOf(toxicity ?? toxic.toxicity))
  return { status: 200, body: toxic }
}

function addToxic(proxy: WireProxy, given: Given) {
  const { type, stream = 'downstream', toxicity = 1, attributes, trigger } = given
  if (typeof type !== 'string' || !(type in ATTRIBUTES)) throw new Refusal(400, 'invalid toxic type')
  if (!isStream(stream)) throw new Refusal(400, 'stream was invalid, can be either upstream or downstream')
  const kind = type as ToxicType
  const { name = `${type}_${stream}` } = given
  if (typeof name !== 'string' || name === '') throw new Refusal(400, 'a name must be a text')
  if (proxy.toxic(name) !== undefined) throw new Refusal(409, 'toxic already exists')
  const complete = attributesOf(kind, attributes, ATTRIBUTES[kind])
  return proxy.add(
    { name, type: kind, stream, toxicity: toxicityOf(toxicity), attributes: complete },
    trigger as Trigger | undefined
  )
}

function attributesOf(type: ToxicType, given: unknown, defaults: Readonly<Record<string, number>>) {
  const known = ATTRIBUTES[type]
  const changes = Object.entries((given ?? {}) as Given).filter(([name]) => name in known)
  for (const [name, value] of changes) {
    if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Refusal(400, `bad request body: ${name}`)
  }
  return { ...defaults, ...(Object.fromEntries(changes) as Record<string, number>) }
}

function toxicityOf(value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) throw new Refusal(400, 'bad request body: toxicity')
  return value
}

function asAddress(value: unknown): string {
  try {
    addressOf(String(value))
  } catch (error) {
    throw new Refusal(400, (error as Error).message)
  }
  return String(value)
}

async function bodyOf(request: IncomingMessage): Promise<Given> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += (chunk as Buffer).length
    if (length > BODY_LENGTH_MAX) throw new Refusal(400, 'bad request body: too long')
    chunks.push(chunk as Buffer)
  }
  if (length === 0) return {}
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as Given
  } catch {
    throw new Refusal(400, 'bad request body')
  }
}

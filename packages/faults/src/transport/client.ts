/**
 * Speaks the HTTP API of Toxiproxy. Each call has a deadline of its own, because the API is known to hang while a toxic is removed under a
 * stalled connection; a late answer is an error of the run, never a reason to skip.
 */
import type { ProxyState, Stream, Toxic, ToxicAttributes, ToxicCounters, ToxicType, Trigger } from './toxics.js'

const CALL_LIMIT_MS = 10_000

/** The API refused a call, or did not answer it. */
export class TransportApiError extends Error {
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number

  constructor(call: string, status: number, message: string, cause?: unknown) {
    super(`${call}: ${message}`, cause === undefined ? undefined : { cause })
    this.name = 'TransportApiError'
    this.status = status
  }
}

export interface NewToxic<T extends ToxicType> {
  readonly type: T
  readonly attributes: ToxicAttributes[T]
  /** Default `<type>_<stream>`. */
  readonly name?: string
  /** Default `downstream`. */
  readonly stream?: Stream
  /** Which part of the connections it is to act on, drawn for each. Default 1. */
  readonly toxicity?: number
  /** Only where `hasCounters`. */
  readonly trigger?: Trigger
}

export class TransportFaults {
  readonly url: string
  readonly version: string

  readonly #callLimitMs: number

  private constructor(url: string, version: string, callLimitMs: number) {
    this.url = url
    this.version = version
    this.#callLimitMs = callLimitMs
  }

  /**
   * `callLimitMs` bounds every call, by default 10 s.
   * @throws TransportApiError if nobody answers there as Toxiproxy does.
   */
  static async at(url: string, callLimitMs = CALL_LIMIT_MS): Promise<TransportFaults> {
    const { version } = await request<{ version: unknown }>({ url, callLimitMs }, 'GET', '/version')
    if (typeof version !== 'string') throw new TransportApiError(`GET ${url}/version`, 200, 'no version in the answer')
    return new TransportFaults(url, version, callLimitMs)
  }

  /** Whether it is the proxy of this package: it counts, resets any connection, and waits for a trigger. */
  get hasCounters(): boolean {
    return this.version.endsWith('-alkblobs')
  }

  proxies(): Promise<Readonly<Record<string, ProxyState>>> {
    return this.call('GET', '/proxies')
  }

  /** A proxy to the address given; it listens on a free port of the loopback address unless told otherwise. */
  async createProxy(name: string, upstream: string, listen = '127.0.0.1:0'): Promise<FaultyProxy> {
    const state = await this.call<ProxyState>('POST', '/proxies', { name, listen, upstream, enabled: true })
    return new FaultyProxy(this, state)
  }

  /** Enables every proxy and removes every toxic. */
  reset(): Promise<void> {
    return this.call('POST', '/reset')
  }

  /** @internal */
  call<T>(method: string, path: string, body?: unknown): Promise<T> {
    return request({ url: this.url, callLimitMs: this.#callLimitMs }, method, path, body)
  }
}

/** One proxy, and the faults of the way that leads through it. */
export class FaultyProxy {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly #faults: TransportFaults

  /** @internal */
  constructor(faults: TransportFaults, { name, listen }: ProxyState) {
    this.#faults = faults
    this.name = name
    const at = listen.lastIndexOf(':')
    const host = listen.slice(0, at).replaceAll(/[[\]]/g, '')
    // What listens everywhere is reached here.
    this.host = host === '0.0.0.0' || host === '::' || host === '' ? '127.0.0.1' : host
    this.port = Number(listen.slice(at + 1))
  }

  state(): Promise<ProxyState> {
    return this.#call('GET', '')
  }

  /** Nobody gets in any more, and every connection is closed, idle or not: the sure death of a socket. */
  disable(): Promise<ProxyState> {
    return this.#call('PATCH', '', { enabled: false })
  }

  enable(): Promise<ProxyState> {
    return this.#call('PATCH', '', { enabled: true })
  }

  add<T extends ToxicType>(toxic: NewToxic<T>): Promise<Toxic> {
    return this.#call('POST', '/toxics', toxic)
  }

  change(name: string, change: { readonly attributes?: object; readonly toxicity?: number }): Promise<Toxic> {
    return this.#call('PATCH', `/toxics/${encodeURIComponent(name)}`, change)
  }

  toxics(): Promise<readonly Toxic[]> {
    return this.#call('GET', '/toxics')
  }

  remove(name: string): Promise<void> {
    return this.#call('DELETE', `/toxics/${encodeURIComponent(name)}`)
  }

  /**
   * From here on every connection that is opened ends by a reset, whatever closes it: the toxic itself never acts (toxicity 0), and sets the
   * option of the sockets all the same. Connections that are open already are closed as they would have been.
   */
  resetWhenClosed(): Promise<Toxic> {
    return this.add({ name: 'reset-when-closed', type: 'reset_peer', toxicity: 0, attributes: { timeout: 0 } })
  }

  /** What the toxic has done. @throws TransportApiError where `hasCounters` is false. */
  counters(name: string): Promise<ToxicCounters> {
    return this.#call('GET', `/toxics/${encodeURIComponent(name)}/counters`)
  }

  /** Resolves when the toxic has dropped bytes or closed a connection. @throws Error when the time is up. */
  async fired(name: string, limitMs = 5_000): Promise<ToxicCounters> {
    for (const end = performance.now() + limitMs; ; ) {
      const counters = await this.counters(name)
      if (counters.bytesDropped + counters.closes > 0) return counters
      if (performance.now() > end) throw new Error(`the toxic ${name} did nothing within ${limitMs} ms`)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }

  /** Resets every open connection at once. Answers how many. @throws TransportApiError where `hasCounters` is false. */
  async resetAll(): Promise<number> {
    return (await this.#call<{ links: number }>('POST', '/links/reset', {})).links
  }

  /** How many connections are open. @throws TransportApiError where `hasCounters` is false. */
  async links(): Promise<number> {
    return (await this.#call<{ links: number }>('GET', '/links')).links
  }

  /** Closes every connection and forgets the proxy. */
  delete(): Promise<void> {
    return this.#call('DELETE', '')
  }

  #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    return this.#faults.call(method, `/proxies/${encodeURIComponent(this.name)}${path}`, body)
  }
}

interface Place {
  readonly url: string
  readonly callLimitMs: number
}

async function request<T>({ url, callLimitMs }: Place, method: string, path: string, body?: unknown): Promise<T> {
  const what = `${method} ${path}`
  let answer: Response
  let text: string
  try {
    answer = await fetch(new URL(path, url), {
      method,
      signal: AbortSignal.timeout(callLimitMs),
      headers: {
        'user-agent': 'alkblobs-faults',
        ...(body === undefined ? {} : { 'content-type': 'application/json' })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    text = await answer.text()
  } catch (error) {
    throw new TransportApiError(what, 0, 'no answer', error)
  }
  const parsed: unknown = text === '' ? undefined : JSON.parse(text)
  if (answer.ok) return parsed as T
  const { error = text } = (parsed ?? {}) as { error?: string }
  throw new TransportApiError(what, answer.status, `${answer.status}, ${error}`)
}

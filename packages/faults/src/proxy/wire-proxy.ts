/** A proxy: a port that listens, where it leads, and the toxics in between. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { ProxyState, Stream, Toxic, ToxicCounters, Trigger } from '../transport/toxics.js'
import { ActiveToxic } from './active-toxic.js'
import { Link } from './link.js'

export class WireProxy {
  readonly name: string
  readonly #links = new Set<Link>()
  readonly #toxics: ActiveToxic[] = []
  #listen: string
  #upstream: string
  #server: Server | undefined

  constructor({
    name,
    listen,
    upstream
  }: { readonly name: string; readonly listen: string; readonly upstream: string }) {
    this.name = name
    this.#listen = listen
    this.#upstream = upstream
  }

  get isEnabled(): boolean {
    return this.#server !== undefined
  }

  get state(): ProxyState {
    return {
      name: this.name,
      listen: this.#listen,
      upstream: this.#upstream,
      enabled: this.isEnabled,
      toxics: (['upstream', 'downstream'] as const).flatMap(stream =>
        this.#toxics.filter(toxic => toxic.stream === stream).map(toxic => toxic.toJSON())
      )
    }
  }

  /** Begins to listen. A port of 0 becomes the one that the system gives, and stays it. */
  async enable(): Promise<void> {
    if (this.#server !== undefined) return
    const { host, port } = addressOf(this.#listen)
    const server = createServer({ allowHalfOpen: true }, client => {
      const link: Link = new Link({
        client,
        upstream: addressOf(this.#upstream),
        toxics: this.#toxics,
        onClose: () => this.#links.delete(link)
      })
      this.#links.add(link)
    })
    server.listen({ host, port })
    await once(server, 'listening')
    this.#server = server
    this.#listen = `${host}:${(server.address() as AddressInfo).port}`
  }

  /** Stops listening, then closes every connection, idle or not. */
  async disable(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    for (const link of this.#links) link.close()
    await closed
  }

  /** A change of either address closes every connection. */
  async move({ listen = this.#listen, upstream = this.#upstream }): Promise<void> {
    if (listen === this.#listen && upstream === this.#upstream) return
    const wasEnabled = this.isEnabled
    await this.disable()
    this.#listen = listen
    this.#upstream = upstream
    if (wasEnabled) await this.enable()
  }

  /** Resets every connection at once, whenever it was opened. Answers how many there were. */
  reset(): number {
    const links = [...this.#links]
    for (const link of links) link.close('reset')
    return links.length
  }

  toxic(name: string): ActiveToxic | undefined {
    return this.#toxics.find(toxic => toxic.name === name)
  }

  counters(name: string): ToxicCounters | undefined {
    return this.toxic(name)?.counters
  }

  get links(): number {
    return this.#links.size
  }

  add(toxic: Toxic, trigger?: Trigger): ActiveToxic {
    const active = new ActiveToxic(toxic, trigger)
    this.#toxics.push(active)
    for (const link of this.#links) link.add(active)
    return active
  }

  change(toxic: ActiveToxic, attributes: Readonly<Record<string, number>>, toxicity: number): void {
    toxic.attributes = { ...toxic.attributes, ...attributes }
    toxic.toxicity = toxicity
    for (const link of this.#links) link.update(toxic)
  }

  remove(toxic: ActiveToxic): void {
    this.#toxics.splice(this.#toxics.indexOf(toxic), 1)
    for (const link of this.#links) link.remove(toxic)
  }

  removeAll(): void {
    for (const toxic of [...this.#toxics]) this.remove(toxic)
  }
}

/** `host:port`, the host in brackets or not. @throws RangeError. */
export function addressOf(text: string): { readonly host: string; readonly port: number } {
  const match = /^\[?([^\]]*)\]?:(\d{1,5})$/.exec(text)
  if (match === null) throw new RangeError(`not an address with a port: ${text}`)
  return { host: match[1] === '' ? '127.0.0.1' : (match[1] as string), port: Number(match[2]) }
}

export const isStream = (value: unknown): value is Stream => value === 'upstream' || value === 'downstream'

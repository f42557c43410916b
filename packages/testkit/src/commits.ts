/** A way to a server on which the next COMMIT is lost, or the answer to it: the connection is reset instead. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** `request`: the server never hears of it. `answer`: it has committed when the connection is reset. */
export type Loss = 'request' | 'answer'

/** A simple query whose whole text it is, with the zero that ends it. */
const COMMIT = Buffer.from('COMMIT\0')

export class Commits {
  /** How many were lost: the proof that one was. */
  lost = 0
  /** Listens here, on the loopback address. */
  port = 0
  readonly #server = createServer(client => this.#accept(client))
  readonly #sockets = new Set<Socket>()
  readonly #target: { readonly host: string; readonly port: number }
  #next: Loss | undefined
  #isLast = false
  #isCut = false

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target
  }

  static async to(target: { readonly host: string; readonly port: number }): Promise<Commits> {
    const commits = new Commits(target)
    commits.#server.listen(0, '127.0.0.1')
    await once(commits.#server, 'listening')
    commits.port = (commits.#server.address() as AddressInfo).port
    return commits
  }

  /** Loses the next COMMIT on whatever connection, and no other. */
  loseNext(what: Loss): void {
    this.#next = what
  }

  /** The same, and nobody gets through any more until `mend`. */
  loseNextAndAll(what: Loss): void {
    this.#next = what
    this.#isLast = true
  }

  mend(): void {
    this.#isLast = false
    this.#isCut = false
  }

  /** The URL of a database, with the way to it over this. */
  url(of: string): string {
    const url = new URL(of)
    url.hostname = '127.0.0.1'
    url.port = `${this.port}`
    return url.href
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket): void {
    if (this.#isCut) return void client.destroy()
    const server = connect(this.#target)
    let losesAnswer = false
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    }
    const reset = () => {
      this.lost += 1
      client.resetAndDestroy()
      server.destroy()
      if (!this.#isLast) return
      this.#isCut = true
      for (const socket of this.#sockets) socket.destroy()
    }
    client.on('error', () => server.destroy()).once('close', () => server.destroy())
    server.on('error', () => client.destroy()).once('close', () => client.end())
    client.on('data', chunk => {
      if (this.#next !== undefined && chunk.includes(COMMIT)) {
        const what = this.#next
        this.#next = undefined
        if (what === 'request') return reset()
        losesAnswer = true
      }
      server.write(chunk)
    })
    server.on('data', chunk => {
      if (losesAnswer) reset()
      else client.write(chunk)
    })
  }
}

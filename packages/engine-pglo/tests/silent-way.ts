// A way to the server that can fall silent, as a cable does that was pulled: nothing arrives any more, and nobody is told.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { atEnd } from './support.js'

export class SilentWay {
  /** The database by this way. */
  url = ''
  isSilent = false
  #lastWords: string | undefined

  static async to({ host, port, url }: { readonly host: string; readonly port: number; readonly url: string }) {
    const way = new SilentWay()
    const sockets = new Set<{ destroy(): unknown }>()
    const server = createServer({ noDelay: true }, client => {
      const far = connect({ host, port, noDelay: true })
      for (const [from, to] of [
        [client, far],
        [far, client]
      ] as const) {
        sockets.add(from)
        from.on('data', chunk => way.#pass(chunk) && to.write(chunk))
        from.on('error', () => undefined)
        from.once('close', () => to.destroy())
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    atEnd(async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    way.url = url.replace(`@${host}:${port}/`, `@127.0.0.1:${(server.address() as AddressInfo).port}/`)
    return way
  }

  /** From here on bytes of connections old and new get lost, in both directions. */
  fallSilent(): void {
    this.isSilent = true
  }

  /** Falls silent at the first message with these words, which goes nowhere. */
  fallSilentAt(words: string): void {
    this.#lastWords = words
  }

  #pass(chunk: Buffer): boolean {
    if (this.#lastWords !== undefined && chunk.includes(this.#lastWords)) {
      this.#lastWords = undefined
      this.isSilent = true
    }
    return !this.isSilent
  }

  heal(): void {
    this.isSilent = false
  }
}

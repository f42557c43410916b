/**
 * One connection through a proxy: two sockets, and a chain of stages for each direction. As with Toxiproxy there is no half of a
 * connection: a side that has said all, or broke, ends its direction; when the end is through the chain, the other side is closed
 * whole, and what that one still says is lost.
 */
import { connect, type Socket } from 'node:net'
import type { Stream } from '../transport/toxics.js'
import type { ActiveToxic } from './active-toxic.js'
import { END, type Item, Stage } from './stage.js'

const STREAMS: readonly Stream[] = ['upstream', 'downstream']

export interface LinkOptions {
  readonly client: Socket
  readonly upstream: { readonly host: string; readonly port: number }
  readonly toxics: readonly ActiveToxic[]
  readonly onClose: () => void
}

export class Link {
  readonly #client: Socket
  readonly #server: Socket
  readonly #stages: Record<Stream, Stage[]> = { upstream: [], downstream: [] }
  readonly #onClose: () => void
  /** Whether closing is a reset: decided when the connection is opened, as the option of the socket that it stands for. */
  readonly #resets: boolean
  #isOver = false

  constructor({ client, upstream, toxics, onClose }: LinkOptions) {
    this.#client = client
    this.#onClose = onClose
    this.#resets = toxics.some(({ type }) => type === 'reset_peer')
    this.#server = connect({ ...upstream, allowHalfOpen: true })
    for (const toxic of toxics) this.add(toxic)
    let open = 2
    for (const socket of [this.#client, this.#server]) {
      socket.setNoDelay(true)
      // Whatever is wrong with it closes it, and whoever reads it ends its direction.
      socket.on('error', () => undefined)
      socket.once('close', () => {
        open -= 1
        if (open === 0) this.close()
      })
    }
    // Who was let in and cannot be served is closed at once, past every toxic.
    const refuse = () => this.close('end')
    this.#server.once('error', refuse).once('connect', () => this.#server.off('error', refuse))
    void this.#pump('upstream', this.#client)
    void this.#pump('downstream', this.#server)
  }

  add(toxic: ActiveToxic): void {
    const chain = this.#stages[toxic.stream]
    const stage: Stage = new Stage(toxic, {
      // Found again for every item: what stands behind a stage may change while it works.
      out: item => this.#send(toxic.stream, item, chain.indexOf(stage) + 1),
      resets: this.#resets
    })
    chain.push(stage)
  }

  update(toxic: ActiveToxic): void {
    this.#stages[toxic.stream].find(each => each.toxic === toxic)?.update()
  }

  /** Takes the toxic out of its chain once it holds nothing; a stalled reader makes nobody wait. */
  remove(toxic: ActiveToxic): void {
    const chain = this.#stages[toxic.stream]
    const stage = chain.find(each => each.toxic === toxic)
    if (stage === undefined) return
    void stage.remove().then(() => {
      const at = chain.indexOf(stage)
      // One that has closed its direction keeps everything else from it.
      if (at >= 0 && !stage.isClosed) chain.splice(at, 1)
    })
  }

  /** Ends both sides at once, and everything between them. */
  close(how: 'as opened' | 'reset' | 'end' = 'as opened'): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const stream of STREAMS) for (const stage of this.#stages[stream]) stage.destroy()
    const isReset = how === 'reset' || (how === 'as opened' && this.#resets)
    for (const socket of [this.#client, this.#server]) {
      if (isReset) socket.resetAndDestroy()
      else socket.destroy()
    }
    this.#onClose()
  }

  async #pump(stream: Stream, from: Socket): Promise<void> {
    try {
      for await (const chunk of from.iterator({ destroyOnReturn: false })) await this.#send(stream, chunk as Buffer, 0)
    } catch {
      // A side that broke has said all that it will.
    }
    await this.#send(stream, END, 0)
  }

  /** Into the stage at that place of the chain, or out of its end. */
  async #send(stream: Stream, item: Item, place: number): Promise<void> {
    const stage = this.#stages[stream][place]
    if (stage !== undefined) return await stage.push(item)
    const to = stream === 'upstream' ? this.#server : this.#client
    if (to.destroyed) return
    if (item === END) return this.#end(to)
    if (item.length === 0 || to.write(item)) return
    // An error ends in a close, and whoever waits has nothing to do with it.
    await new Promise<void>(resolve => {
      to.once('drain', resolve).once('close', resolve)
    })
  }

  #end(socket: Socket): void {
    if (this.#resets) socket.resetAndDestroy()
    else socket.destroySoon()
  }
}

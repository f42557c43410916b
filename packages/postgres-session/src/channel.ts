/**
 * A socket with two who read from it: the driver, and while they wait for answers, exchanges of ours (`lane.ts`).
 *
 * A plain socket reads into one buffer, again and again: fresh memory for each read is what the garbage collector counts (0.5 to 0.8
 * ms a MiB by way of the driver, 0.3 like this). The driver keeps what it is given, so it is given copies.
 */
import { EventEmitter } from 'node:events'
import type { OnReadOpts, Socket } from 'node:net'

/** As much as is read at once; it stays in the cache of the processor. */
const READ_LENGTH = 256 * 1024

export class Channel {
  #socket: Socket | undefined
  #reader: ((bytes: Buffer) => void) | undefined
  /** What the driver takes for the socket. */
  readonly driversSide = new DriversSide()

  /** With these a plain socket is to be made: what it reads comes here. */
  reading(): OnReadOpts {
    const buffer = Buffer.allocUnsafeSlow(READ_LENGTH)
    const callback = (length: number) => {
      const bytes = buffer.subarray(0, length)
      this.take(this.#reader === undefined ? Buffer.from(bytes) : bytes)
      return true
    }
    return { buffer, callback }
  }

  /** From now on this is the socket; one that was not made with `reading` is listened to. */
  carry(socket: Socket, isReading: boolean): void {
    this.#socket = socket
    this.driversSide.stand(socket)
    if (!isReading) socket.on('data', bytes => this.take(bytes))
  }

  /** Gives what comes to this reader, which keeps none of it; `undefined`: to the driver. */
  divert(reader: ((bytes: Buffer) => void) | undefined): void {
    this.#reader = reader
  }

  take(bytes: Buffer): void {
    if (this.#reader === undefined) this.driversSide.emit('data', bytes)
    else this.#reader(bytes)
  }

  /** What a reader of ours found to be the driver's. */
  leave(bytes: Buffer): void {
    this.take(Buffer.from(bytes))
  }

  /** Writes pieces as they lie; they are read until they have left. */
  write(pieces: readonly Uint8Array[]): void {
    const socket = this.#socket as Socket
    socket.cork()
    for (const piece of pieces) socket.write(piece)
    socket.uncork()
  }
}

/** As much of a socket as the driver uses. */
class DriversSide extends EventEmitter {
  #socket: Socket | undefined

  stand(socket: Socket): void {
    this.#socket = socket
    socket.on('drain', () => this.emit('drain'))
    socket.on('close', (hadError: boolean) => this.emit('close', hadError))
    // Without a listener an error would be thrown; the connection has its own.
    socket.on('error', error => this.listenerCount('error') > 0 && this.emit('error', error))
  }

  get readyState(): string {
    return this.#socket?.readyState ?? 'closed'
  }

  write(bytes: Uint8Array, sent?: (error?: Error | null) => void): boolean {
    return this.#socket?.write(bytes, sent) ?? false
  }

  end(bytes: Uint8Array): void {
    this.#socket?.end(bytes)
  }

  destroy(): void {
    this.#socket?.destroy()
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }
}

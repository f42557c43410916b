/**
 * A socket with two who read from it: the driver, behind a guard (`guard.ts`), and while they wait for answers, exchanges of ours
 * (`lane.ts`).
 *
 * A plain socket reads into one buffer, again and again: fresh memory for each read is what the garbage collector counts (0.5 to 0.8
 * ms a MiB by way of the driver, 0.3 like this). The driver keeps what it is given, so the guard copies it.
 */
import { EventEmitter } from 'node:events'
import type { OnReadOpts, Socket } from 'node:net'
import { unasked } from './failure.js'
import { Guard } from './guard.js'

/** As much as is read at once; it stays in the cache of the processor. */
const READ_LENGTH = 256 * 1024

export class Channel {
  #socket: Socket | undefined
  #reader: ((bytes: Buffer) => void) | undefined
  readonly #guard = new Guard(message => this.driversSide.emit('data', message))
  readonly #kill: (reason: unknown) => void
  #isOver = false
  /** What the driver takes for the socket. */
  readonly driversSide = new DriversSide()

  /** `kill`: what comes is not to be heard by anybody. */
  constructor(kill: (reason: unknown) => void) {
    this.#kill = kill
  }

  /** With these a plain socket is to be made: what it reads comes here. */
  reading(): OnReadOpts {
    const buffer = Buffer.allocUnsafeSlow(READ_LENGTH)
    const callback = (length: number) => {
      this.take(buffer.subarray(0, length))
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

  /** Whether a COPY to the server is begun by the driver now, so that the server may say so. */
  set isCopying(yes: boolean) {
    this.#guard.expectsCopy = yes
  }

  /** Takes what came, and keeps none of it. A message that began when it was the driver's turn is the driver's to its end. */
  take(bytes: Buffer): void {
    if (this.#isOver) return
    const reader = this.#reader
    try {
      let taken = 0
      if (reader === undefined || !this.#guard.isBetween) {
        // A server waits to be asked.
        if (!this.driversSide.hasSpoken) throw unasked()
        taken = this.#guard.take(bytes, reader !== undefined)
      }
      if (taken < bytes.length) reader?.(bytes.subarray(taken))
    } catch (error) {
      this.#kill(error)
    }
  }

  /** Nobody hears anything any more. */
  end(): void {
    this.#isOver = true
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
  hasSpoken = false

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
    this.hasSpoken = true
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

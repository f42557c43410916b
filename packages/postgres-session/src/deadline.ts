/** The end of patience: a call's deadline and signal as one thing that fires once. */
import { setMaxListeners } from 'node:events'
import { type Call, EngineFault } from '@alkblobs/core/engine'

/** Longest timer that Node.js keeps; a longer one fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

/** Watches until the returned function is called. `end` gets the reason, at most once, never before this has returned. */
export function watch(call: Call, end: (reason: unknown) => void): () => void {
  const { signal } = call
  const stop = () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
  const abort = () => {
    stop()
    end(signal?.reason)
  }
  const expire = () => {
    stop()
    end(new EngineFault('transient', 'the server did not answer within the deadline'))
  }
  const timer = Number.isFinite(call.deadlineMs)
    ? setTimeout(expire, Math.min(Math.max(remaining(call), 0), TIMER_MAX_MS))
    : undefined
  if (signal !== undefined) {
    // Any number of calls may hang on one signal; each takes its listener off when it is over.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', abort)
  }
  return stop
}

/** @throws the signal's reason, or EngineFault `transient`, for a call that may begin nothing any more (ENG-4). */
export function checkPatience(call: Call): void {
  call.signal?.throwIfAborted()
  if (remaining(call) <= 0) throw new EngineFault('transient', 'the deadline has passed')
}

export function remaining(call: Call): number {
  return call.deadlineMs - performance.now()
}

/** The same call, ended by this many milliseconds from now at the latest. */
export function within(call: Call, limitMs: number): Call {
  return { ...call, deadlineMs: Math.min(call.deadlineMs, performance.now() + limitMs) }
}

/**
 * Waiting for other processes. SQLite's own waiting blocks the event loop, so a step that finds the file locked is simply
 * tried again after a short, random while; what is random cannot keep missing the same gap, so nobody starves.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, EngineFault } from '@alkblobs/core/engine'
import { isBusy } from './classify.js'

/** Longest wait between two attempts, in milliseconds: about what a large commit of another process takes. */
const PAUSE_MS_MAX = 10

/** @throws what the signal was fired with, or EngineFault `transient` after the deadline: nothing new may begin. */
export function refuseIfOver({ signal, deadlineMs }: Call): void {
  signal?.throwIfAborted()
  if (performance.now() >= deadlineMs)
    throw new EngineFault('transient', 'the deadline passed before the file was reached')
}

/** The error of who waited in vain. */
export function locked(cause: unknown): EngineFault {
  return new EngineFault('conflict', 'another process kept the file locked for longer than this call may wait', cause)
}

/** A random while that grows with the number of attempts, but ends at `until` on the clock of `performance.now()`. */
export async function pause(attempts: number, until: number): Promise<void> {
  const whileMs = Math.random() * Math.min(PAUSE_MS_MAX, 1 + attempts)
  await sleep(Math.max(0, Math.min(whileMs, until - performance.now())))
}

/** Makes a synchronous step, again and again while the file is locked, up to the call's deadline and `lockTimeoutMs`. */
export async function untilFree<T>(step: () => T, call: Call, lockTimeoutMs: number): Promise<T> {
  let giveUpAt: number | undefined
  for (let attempts = 1; ; attempts++) {
    refuseIfOver(call)
    try {
      return step()
    } catch (error) {
      if (!isBusy(error)) throw error
      giveUpAt ??= Math.min(call.deadlineMs, performance.now() + lockTimeoutMs)
      if (performance.now() >= giveUpAt) throw locked(error)
    }
    await pause(attempts, giveUpAt)
  }
}

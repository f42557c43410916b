/** Waiting for other writers, and knowing what the server said: which failures are worth another attempt, and for how long. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, EngineFault } from '@alkblobs/core/engine'

/** Longest wait between two attempts, in milliseconds. */
const PAUSE_MS_MAX = 50

/** Serialization failure, deadlock, lock timeout: another attempt may succeed in a moment. */
const CONTENTION = new Set(['40001', '40P01', '55P03'])
/** Table or schema not there. */
const MISSING = new Set(['42P01', '3F000'])

/** The SQLSTATE of what a server answered, however deep it was wrapped. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code
  }
  return undefined
}

export function isContention(error: unknown): boolean {
  return CONTENTION.has(sqlStateOf(error) ?? '')
}

export function isMissing(error: unknown): boolean {
  return MISSING.has(sqlStateOf(error) ?? '')
}

/** @throws what the signal was fired with, or EngineFault `transient` after the deadline: nothing new may begin. */
export function refuseIfOver({ signal, deadlineMs }: Call): void {
  signal?.throwIfAborted()
  if (performance.now() >= deadlineMs)
    throw new EngineFault('transient', 'the deadline passed before the server was asked')
}

/** A random while that grows with the number of attempts, but ends at `until` on the clock of `performance.now()`. */
export async function pause(attempts: number, until: number): Promise<void> {
  const whileMs = Math.random() * Math.min(PAUSE_MS_MAX, 2 * attempts)
  await sleep(Math.max(0, Math.min(whileMs, until - performance.now())))
}

/** When a call that found something locked gives up, on the clock of `performance.now()`. */
export function giveUpAt({ deadlineMs }: Call, lockTimeoutMs: number): number {
  return Math.min(deadlineMs, performance.now() + lockTimeoutMs)
}

/** Makes a step, again and again while others stand in its way, up to the call's deadline and `lockTimeoutMs`. */
export async function untilFree<T>(call: Call, lockTimeoutMs: number, step: () => Promise<T>): Promise<T> {
  const until = giveUpAt(call, lockTimeoutMs)
  for (let attempts = 1; ; attempts++) {
    refuseIfOver(call)
    try {
      return await step()
    } catch (error) {
      if (!isContention(error) || performance.now() >= until) throw error
    }
    await pause(attempts, until)
  }
}

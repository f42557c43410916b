/**
 * Being watched: one `node:diagnostics_channel` tracing channel for each kind of operation, `alkblobs:put` and so on.
 * Nobody listening costs one look. Messages hold keys, lengths, tiers and counts, never content.
 */
import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel'

/** What a subscriber sees; `result` and `error` are added by the channel. */
export interface OperationTrace {
  readonly operation: Operation
  readonly durability: string
  key?: string
  length?: number
  tier?: string
  durationMs?: number
}

export type Operation = 'put' | 'get' | 'delete' | 'pin' | 'sweep' | 'maintain' | 'verify'

const channels = new Map<Operation, TracingChannel<object>>()

function channelOf(operation: Operation): TracingChannel<object> {
  let channel = channels.get(operation)
  if (channel === undefined) {
    channel = tracingChannel(`alkblobs:${operation}`)
    channels.set(operation, channel)
  }
  return channel
}

function isWatched(channel: TracingChannel<object>): boolean {
  return (
    channel.start.hasSubscribers ||
    channel.end.hasSubscribers ||
    channel.asyncStart.hasSubscribers ||
    channel.asyncEnd.hasSubscribers ||
    channel.error.hasSubscribers
  )
}

/** Whether anybody watches operations of this kind. */
export function isTraced(operation: Operation): boolean {
  return isWatched(channelOf(operation))
}

/** Runs an operation under its channel; it may fill in the trace as it learns more. @throws what `run` throws before it returns. */
export function traced<T>(
  operation: Operation,
  durability: string,
  run: (trace: OperationTrace) => Promise<T>
): Promise<T> {
  const trace: OperationTrace = { operation, durability }
  const channel = channelOf(operation)
  if (!isWatched(channel)) return run(trace)
  const startedMs = performance.now()
  return channel.tracePromise(async () => {
    try {
      return await run(trace)
    } finally {
      trace.durationMs = performance.now() - startedMs
    }
  }, trace)
}

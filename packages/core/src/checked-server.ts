/** The only caller of what media on a server have beside the rest: their identity, and the application's transactions. */
import type { JoinedTransaction, PublishOutcome, ServerIdentity, ServerMedium } from './engine.js'
import type { EngineCalls } from './engine-calls.js'

const READ = { readOnly: true } as const

export async function identityOf(calls: EngineCalls, server: ServerMedium | undefined): Promise<ServerIdentity> {
  if (server === undefined) throw calls.broken('server.identity', 'it is on no server')
  return calls.run('server.identity', READ, call => server.identity(call))
}

/** A transaction of the application's that entries are made in. */
export class CheckedJoin {
  readonly #joined: JoinedTransaction
  readonly #calls: EngineCalls

  constructor(joined: JoinedTransaction, calls: EngineCalls) {
    this.#joined = joined
    this.#calls = calls
  }

  async publish(item: Parameters<JoinedTransaction['publish']>[0]): Promise<PublishOutcome> {
    const { key, bytes } = item
    const outcome = await this.#calls.run('joining.publish', { key }, call => this.#joined.publish(item, call))
    if ('entry' in outcome && outcome.entry.key !== key)
      throw this.#calls.broken('joining.publish', 'an entry of another key')
    const isPossible = outcome.outcome === 'absent' ? bytes.kind === 'none' : outcome.outcome !== 'healed'
    if (!isPossible) throw this.#calls.broken('joining.publish', `it answered ${outcome.outcome}`)
    return outcome
  }
}

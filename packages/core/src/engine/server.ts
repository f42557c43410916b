/** What a medium on a database server has beside its catalog or bodies: an identity, and the application's own transactions. */
import type { Call } from '../engine.js'
import type { Publication, PublishOutcome } from './records.js'

/** Which server a medium is on. */
export interface ServerIdentity {
  /** Names the server instance: the same over every connection to it, another one for every copy that was loaded elsewhere. */
  readonly system: string
  /** Names the database in it; a copy on the same server has another. */
  readonly database: string
  /** Rises when the server is promoted, or recovered to a point in time. */
  readonly timeline: number
}

/** Present where a medium lies on a server that several hosts can reach. */
export interface ServerMedium {
  /** ENG-SERVER-1 MUST ask the server, each time. */
  identity(call: Call): Promise<ServerIdentity>
}

/** The same for a catalog: it can be shared by a fleet. */
export interface ServerCatalog extends ServerMedium {
  /** How many sessions the catalog may have open at once. A lease holds one of them. */
  readonly sessionsMax: number
  /** ENG-SERVER-2 MUST say in a few words why a fleet cannot share this catalog (the server is too old, …); `undefined` if it can. */
  unfit(call: Call): Promise<string | undefined>
}

/** Present where entries can be made inside a transaction of the application. */
export interface Joining {
  /**
   * ENG-JOIN-1 MUST refuse, by an InvalidArgumentError, what is no open transaction on the catalog's own server and database, and one whose
   *            isolation is above READ COMMITTED. It remembers the transaction's session and id.
   */
  join(transaction: unknown, call: Call): Promise<JoinedTransaction>
}

export interface JoinedTransaction {
  /**
   * ENG-JOIN-2 MUST do in that transaction what ENG-PUBLISH-1 to -6 say, without a pin, so that it takes effect with the transaction's commit
   *            or not at all; each of its statements MUST do nothing if the session is not in that very transaction any more (a driver may go on
   *            without one when it has died), and `conflict` is thrown then.
   * ENG-JOIN-3 Nobody else's renewal, maintenance or arbitration may wait for its rows; until its end they count as live.
   */
  publish(item: Omit<Publication, 'pin' | 'healing'>, call: Call): Promise<PublishOutcome>
}

/** The toxics of Toxiproxy, by name and attribute, as both the client and the proxy of this package know them. */

/** `upstream`: from the client to the server. `downstream`: from the server to the client. */
export type Stream = 'upstream' | 'downstream'

/** Attributes with their units; all are whole numbers. */
export interface ToxicAttributes {
  /** Delay and its spread in milliseconds. */
  latency: { readonly latency: number; readonly jitter?: number }
  /** Kilobytes in a second; 0 lets nothing pass. */
  bandwidth: { readonly rate: number }
  /** Milliseconds by which the end of the stream is late. */
  slow_close: { readonly delay: number }
  /** Drops everything, and closes after so many milliseconds of silence; 0 never closes. Closes when it is removed. */
  timeout: { readonly timeout: number }
  /** Closes so many milliseconds after the next bytes; with a reset, if it was there before the connection was. */
  reset_peer: { readonly timeout: number }
  /** Bytes, bytes, and microseconds between the slices. */
  slicer: { readonly average_size: number; readonly size_variation?: number; readonly delay?: number }
  /** Lets so many bytes pass, then closes. */
  limit_data: { readonly bytes: number }
}
export type ToxicType = keyof ToxicAttributes

/** The attributes there are of each type, with the values that are taken for those left out. */
export const ATTRIBUTES: Readonly<Record<ToxicType, Readonly<Record<string, number>>>> = {
  latency: { latency: 0, jitter: 0 },
  bandwidth: { rate: 0 },
  slow_close: { delay: 0 },
  timeout: { timeout: 0 },
  reset_peer: { timeout: 0 },
  slicer: { average_size: 0, size_variation: 0, delay: 0 },
  limit_data: { bytes: 0 }
}

/** A toxic as the API answers it. */
export interface Toxic {
  readonly name: string
  readonly type: ToxicType
  readonly stream: Stream
  readonly toxicity: number
  readonly attributes: Readonly<Record<string, number>>
}

/** What one toxic has done. Of the proxy of this package alone: Toxiproxy counts when a connection has ended. */
export interface ToxicCounters {
  /** Connections that it stands in, or stood. */
  readonly links: number
  readonly chunks: number
  readonly bytesDropped: number
  readonly closes: number
  readonly resets: number
}

/** Until when a toxic lets everything pass. Of the proxy of this package alone. */
export interface Trigger {
  /** So many more bytes in its direction, counted over all connections. */
  readonly bytes?: number
  /** The next message of the server of this type, one letter (`C`: CommandComplete, `Z`: ReadyForQuery). Downstream, on connections that are idle. */
  readonly message?: string
}

/** A proxy as the API answers it. */
export interface ProxyState {
  readonly name: string
  readonly listen: string
  readonly upstream: string
  readonly enabled: boolean
  readonly toxics: readonly Toxic[]
}

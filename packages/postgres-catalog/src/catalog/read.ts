/**
 * Reads of single entries, joined: what is asked while others are on their way goes together, in one message each way, and
 * bodies come in binary form.
 *
 *   1. A read queues and asks for a turn of the event loop. While a lane is free it takes its share of the queue.
 *   2. A batch answers bodies of up to BODY_LENGTH_MAX, so that its memory is bounded; a longer one is read again, alone.
 *   3. Each read ends with its own call. A batch that nobody waits for any more is given up, and its session with it. A batch knows what
 *      its time went for, a session or an answer, so reads that end when it does end of the same.
 *   4. If a batch fails, each of its reads that have time left runs again alone, so a read fails only itself.
 */
import {
  type BlobKey,
  type Call,
  type Catalog,
  digestHexOf,
  digestOf,
  type Entry,
  type Locator
} from '@alkblobs/core/engine'
import { byteaArray, int8, watch } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { refuseIfOver } from '../waiting.js'
import { EMPTY, entryOf } from './entries.js'

type Found = { readonly entry: Entry; readonly body?: Uint8Array } | undefined

interface Waiting {
  readonly key: BlobKey
  readonly call: Call
  readonly resolve: (found: Found) => void
  readonly reject: (error: unknown) => void
  /** When the batch that it is in gives up. */
  batchEndsMs: number
  /** Called when the read is answered or given up. */
  left: () => void
  isOver: boolean
}

/** With longer bodies, and more of them, a batch would take more memory than it saves time. */
const BODY_LENGTH_MAX = 256 * 1024
const READS_MAX = 64
/** Reads that are asked for together have deadlines that are this close. */
const SAME_MS = 20
/** A share smaller than this is not worth a message of its own. */
const READS_MIN = 16

const READ = `
  SELECT key, length, locator, octet_length(body), CASE WHEN octet_length(body) <= $2::bigint THEN body END
  FROM $.entries WHERE key = ANY ($1::bytea[])`
/** The column of the body. */
const BODY = 4

export class JoinedReads {
  readonly #pool: Pool
  readonly #lanesMax: number
  #queue: Waiting[] = []
  #lanes = 0
  #hasTurn = false

  /** `lanes`: how many batches may be under way at once. */
  constructor(pool: Pool, lanes: number) {
    this.#pool = pool
    this.#lanesMax = lanes
  }

  async read(key: BlobKey, call: Call): Promise<Found> {
    refuseIfOver(call)
    return new Promise<Found>((resolve, reject) => {
      const end = (then: () => void) => {
        if (waiting.isOver) return
        waiting.isOver = true
        stop()
        then()
        waiting.left()
      }
      const waiting: Waiting = {
        key,
        call,
        resolve: found => end(() => resolve(found)),
        reject: error => end(() => reject(error)),
        batchEndsMs: Number.POSITIVE_INFINITY,
        left: () => undefined,
        isOver: false
      }
      const stop = watch(call, reason => {
        if (call.signal?.aborted === true || waiting.batchEndsMs > call.deadlineMs + SAME_MS) waiting.reject(reason)
      })
      this.#queue.push(waiting)
      this.#askForTurn()
    })
  }

  #askForTurn(): void {
    if (this.#hasTurn) return
    this.#hasTurn = true
    setImmediate(() => {
      this.#hasTurn = false
      this.#start()
    })
  }

  #start(): void {
    this.#queue = this.#queue.filter(({ isOver }) => !isOver)
    while (this.#lanes < this.#lanesMax && this.#queue.length > 0) {
      const share = Math.ceil(this.#queue.length / (this.#lanesMax - this.#lanes))
      const batch = this.#queue.splice(0, Math.min(READS_MAX, Math.max(READS_MIN, share)))
      this.#lanes++
      void this.#serve(batch).finally(() => {
        this.#lanes--
        this.#start()
      })
    }
  }

  async #serve(batch: readonly Waiting[]): Promise<void> {
    if (batch.length > 1) await this.#answer(batch, BODY_LENGTH_MAX).catch(error => rejectLate(batch, error))
    const left = batch.filter(({ isOver }) => !isOver)
    await Promise.all(left.map(waiting => this.#answer([waiting], Number.MAX_SAFE_INTEGER).catch(waiting.reject)))
  }

  /** Answers those of the batch whose bodies are no longer than this. */
  async #answer(batch: readonly Waiting[], lengthMax: number): Promise<void> {
    const call = callOfAll(batch)
    const found = await this.#pool.ask(
      call,
      () => new Map<string, FoundRow>(),
      at => look(at, batch, lengthMax)
    )
    for (const waiting of batch) {
      const row = found.get(digestHexOf(waiting.key))
      if (row === undefined) waiting.resolve(undefined)
      else if (row.isWhole) waiting.resolve(readOf(waiting.key, row))
    }
  }
}

/** The latest deadline of all, and a signal that fires when nobody is left. */
function callOfAll(batch: readonly Waiting[]): Call {
  const abandoned = new AbortController()
  let left = batch.length
  const deadlineMs = Math.max(...batch.map(({ call }) => call.deadlineMs))
  for (const waiting of batch) {
    waiting.batchEndsMs = deadlineMs
    waiting.left = () => {
      left -= 1
      if (left === 0) abandoned.abort(new Error('nobody waits for it any more'))
    }
  }
  return { deadlineMs, signal: abandoned.signal }
}

interface FoundRow {
  readonly length: bigint
  readonly locator: Locator | null
  readonly held: number | null
  readonly body: Buffer | null
  readonly isWhole: boolean
  /** Whether somebody has the body's memory. */
  isTaken: boolean
}

async function look(at: Connection, batch: readonly Waiting[], lengthMax: number): Promise<Map<string, FoundRow>> {
  const keys = [...new Set(batch.map(({ key }) => key))]
  const rows = await at.binaryRows({
    text: READ,
    params: [byteaArray(keys.map(digestOf)), int8(lengthMax)],
    // A body is its caller's, so it shares memory with nothing; the others do, with much.
    room: () => (column, length) => (column === BODY ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length))
  })
  return new Map(
    rows.map(([key, length, locator, held, body]) => {
      const bytes = held?.readInt32BE(0) ?? null
      const row = {
        length: (length as Buffer).readBigInt64BE(0),
        locator: (locator?.toString() ?? null) as Locator | null,
        held: bytes,
        body: body ?? null,
        isWhole: (bytes === null) === (body === null),
        isTaken: false
      }
      return [(key as Buffer).toString('hex'), row]
    })
  )
}

/** The body is the caller's (ENG-READ-1): the first who asks has it as it came, any other one a copy. */
function readOf(key: BlobKey, row: FoundRow): Found {
  const { length, locator, held, body } = row
  if (locator !== null) return { entry: entryOf(key, length, 0, locator) }
  const mine = row.isTaken ? Buffer.from(body ?? EMPTY) : (body ?? EMPTY)
  row.isTaken = true
  return { entry: entryOf(key, length, held, null), body: mine }
}

/** Whoever has time left runs again. */
function rejectLate(batch: readonly Waiting[], error: unknown): void {
  const nowMs = performance.now()
  for (const { call, reject } of batch) if (call.deadlineMs <= nowMs + SAME_MS) reject(error)
}

export function readsOf(pool: Pool, lanes: number): Pick<Catalog, 'read'> {
  const reads = new JoinedReads(pool, lanes)
  return { read: (key, call) => reads.read(key, call) }
}

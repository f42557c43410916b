/** An application beside the engine, on a server: a session of its own, with the driver `postgres`, whose transactions take rows and blobs together. */
import postgres from 'postgres'

/** What the application writes when it refers to a blob. A table of the tests' own: the pool knows nothing of it. */
export const REFERENCES = 'public.alkblobs_test_references'

/** The application's own driver failed, or lost its connection. */
export class ApplicationFailure extends Error {
  constructor(cause: unknown) {
    super('the session of the application failed', { cause })
    this.name = 'ApplicationFailure'
  }
}

/** Work inside the application's transaction; `refer` writes its row for a key, `pid` is the server process that serves it. */
export type Together<T> = (transaction: unknown, refer: (key: string) => Promise<void>, pid: number) => Promise<T>

/**
 * Runs the work in a transaction of a session of its own, and commits it if the work resolves; otherwise the session is ended, and with it the
 * transaction. What the work puts through `store.joining(transaction)` and what it refers to are there both or neither.
 * @throws what the work throws, ApplicationFailure if the session fails; whether a commit that failed took effect is not known.
 */
export async function together<T>(url: string, work: Together<T>): Promise<T> {
  const session = await Session.open(url)
  try {
    await session.run('BEGIN')
    const refer = (key: string) => session.run(`INSERT INTO ${REFERENCES} VALUES ($1)`, [key])
    const result = await work(session.handle, refer, session.pid)
    await session.run('COMMIT')
    return result
  } finally {
    await session.end()
  }
}

/** One session. The driver throws past every promise when it is asked on a connection that is gone, and forgets what it was asked just before; this one does neither. */
class Session {
  readonly #sql: postgres.Sql
  #handle: postgres.ReservedSql | undefined
  pid = 0
  #isLost = false
  #lose: (error: Error) => void = () => undefined
  readonly #lost: Promise<never>

  private constructor(url: string) {
    this.#lost = new Promise((_, reject) => {
      this.#lose = reject
    })
    this.#lost.catch(() => undefined)
    this.#sql = postgres(url, {
      max: 1,
      fetch_types: false,
      connect_timeout: 5,
      backoff: false,
      onnotice: () => undefined,
      onclose: () => {
        this.#isLost = true
        this.#lose(Object.assign(new Error('the connection was closed'), { code: 'CONNECTION_CLOSED' }))
      },
      connection: { application_name: 'alkblobs-application' }
    })
  }

  static async open(url: string): Promise<Session> {
    const session = new Session(url)
    try {
      // Reserving the connection would not connect it, and wait for ever.
      await session.#own(session.#sql.unsafe(`CREATE TABLE IF NOT EXISTS ${REFERENCES} (key text)`))
      const [row] = await session.#own(session.#sql.unsafe('SELECT pg_backend_pid() AS pid'))
      session.pid = Number(row?.pid)
      session.#handle = await session.#own(session.#sql.reserve())
      return session
    } catch (error) {
      await session.end()
      throw error
    }
  }

  /** What `store.joining` takes. */
  get handle(): unknown {
    const unsafe = (...args: Parameters<postgres.Sql['unsafe']>) => ({ raw: () => this.#ask(...args) })
    return Object.assign(() => undefined, { unsafe })
  }

  async run(text: string, params: string[] = []): Promise<void> {
    await this.#own(this.#ask(text, params))
  }

  async end(): Promise<void> {
    await this.#sql.end({ timeout: 0 }).catch(() => undefined)
  }

  #ask(...[text, params, options]: Parameters<postgres.Sql['unsafe']>): Promise<unknown> {
    if (this.#isLost || this.#handle === undefined) return this.#lost
    return Promise.race([this.#handle.unsafe(text, params, options).raw(), this.#lost])
  }

  async #own<T>(asked: PromiseLike<T>): Promise<T> {
    try {
      return await Promise.race([asked, this.#lost])
    } catch (error) {
      throw new ApplicationFailure(error)
    }
  }
}

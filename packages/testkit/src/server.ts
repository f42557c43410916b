/** A server of the tests: where it is, and what can be done to it. */
import { createHash, randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Kind, kindsToTry, startOf } from './choice.js'
import { type Address, type Keeper, KeeperGone, keep } from './keeper.js'
import { clientOf } from './sql.js'

export interface TestServer extends Address {
  readonly url: string
  /** Of the server that answers there, such as `17.9`. */
  readonly version: string
  /** Fast shutdown: sessions are cut, what is committed stays. The address stays the same. */
  stop(): Promise<void>
  /** Starts a stopped or killed server; resolves when it takes sessions. */
  start(): Promise<void>
  /** `stop`, then `start`. */
  restart(): Promise<void>
  /** Kills the postmaster in the middle of whatever it does: SIGKILL, or SIGQUIT, upon which it tells its sessions (57P02). */
  kill(signal?: 'SIGKILL' | 'SIGQUIT'): Promise<void>
  /** Lets go of the server; the last holder's release ends it and removes its files. Happens by itself when the process ends. */
  release(): Promise<void>
}

export interface ServerOptions {
  /** `postgresql.conf` settings beside those of every test server. */
  readonly settings?: Readonly<Record<string, string>>
  /** A folder of PostgreSQL binaries instead of the ones that would be chosen. */
  readonly bin?: string
}

/** A keeper that is about to end may be met, a second one by great misfortune. */
const ATTEMPTS = 5
/** A server that is up answers at once; a machine that is busy takes its time. */
const ANSWER_MS = 10_000

/** A server that others may use at the same time says no to being stopped. */
type Holding = 'own' | 'shared'

/**
 * A server of one's own, stopped with its files when it is released or this process ends, however it ends. Never one from
 * the environment, because it may be stopped and killed.
 * @throws Error with every reason why there is none.
 */
export async function startServer({ settings = {}, bin }: ServerOptions = {}): Promise<TestServer> {
  const kinds = bin === undefined ? kindsToTry().filter(kind => kind !== 'env') : (['embedded'] as const)
  const { server } = await firstOf(kinds.length === 0 ? ['docker', 'embedded'] : kinds, kind => {
    return keptServer(kind, socketPath(randomBytes(8).toString('hex')), 'own', settings, bin)
  })
  return server
}

/** The server of this run: the one of the environment, or one that everybody who asks at the same time shares. */
export async function holdShared(): Promise<Found> {
  const workspace = fileURLToPath(new URL('../../../', import.meta.url))
  const choice = ['ALKBLOBS_PG', 'ALKBLOBS_PG_BIN', 'ALKBLOBS_PG_IMAGE'].map(name => process.env[name] ?? '')
  const identity = JSON.stringify([workspace, process.getuid?.() ?? 0, ...choice])
  const name = createHash('sha256').update(identity).digest('hex').slice(0, 16)
  return firstOf(kindsToTry(), kind =>
    kind === 'env' ? fromEnvironment() : keptServer(kind, socketPath(`${kind}-${name}`), 'shared', {})
  )
}

/** A server, and why it is none of the kinds that come before its own. */
interface Found {
  readonly server: TestServer
  readonly refusals: readonly string[]
}

/** The first kind that can be had, or all the reasons. */
async function firstOf(
  kinds: readonly Kind[],
  open: (kind: Kind) => Promise<TestServer | { readonly refused: string }>
): Promise<Found> {
  const refusals: string[] = []
  for (const kind of kinds) {
    const server = await open(kind).catch((error: Error) => ({ refused: error.message }))
    if (!('refused' in server)) return { server, refusals }
    refusals.push(`${kind}: ${server.refused}`)
  }
  throw new Error(`no PostgreSQL for the tests (${refusals.join('; ')})`)
}

async function keptServer(
  kind: Kind,
  socket: string,
  holding: Holding,
  settings: Readonly<Record<string, string>>,
  bin?: string
): Promise<TestServer | { readonly refused: string }> {
  if (kind === 'env') return { refused: 'a server that others use cannot be had alone' }
  const start = bin === undefined ? await startOf(kind) : ({ kind: 'embedded', bin } as const)
  if ('refused' in start) return start
  for (let attempt = 1; ; attempt++) {
    const keeper = await keep(socket, start, settings)
    try {
      return await kept(await keeper.ready(), keeper, holding)
    } catch (error) {
      await keeper.release()
      if (!(error instanceof KeeperGone) || attempt === ATTEMPTS) throw error
    }
  }
}

async function kept(address: Address, keeper: Keeper, holding: Holding): Promise<TestServer> {
  const version = await versionOf(address)
  const order = async (what: 'start' | 'stop' | 'kill', signal?: string) => {
    if (holding === 'shared') throw new Error('the server is shared by the whole run; start one of your own')
    await keeper.order(what, signal)
  }
  return {
    ...address,
    version,
    url: urlOf(address),
    stop: () => order('stop'),
    start: () => order('start'),
    restart: async () => {
      await order('stop')
      await order('start')
    },
    kill: signal => order('kill', signal),
    release: () => keeper.release()
  }
}

async function fromEnvironment(): Promise<TestServer | { readonly refused: string }> {
  const { ALKBLOBS_PG_HOST: host, ALKBLOBS_PG_PORT: port = '5432' } = process.env
  if (host === undefined || host === '') return { refused: 'ALKBLOBS_PG_HOST is not set' }
  const { ALKBLOBS_PG_USER: user = 'postgres', ALKBLOBS_PG_PASSWORD: password = '' } = process.env
  const { ALKBLOBS_PG_DB: database = user } = process.env
  const address = { kind: 'env', host, port: Number(port), user, password, database } as const
  return addressed({ ...address, version: await versionOf(address) })
}

/** Asks the server itself: an image's tag or a folder's name is what somebody called it. @throws if none answers in time. */
async function versionOf(address: Address): Promise<string> {
  const client = clientOf(address)
  let timer: NodeJS.Timeout | undefined
  // The driver connects again for ever to a port that accepts and closes.
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`no PostgreSQL answers at ${address.host}:${address.port}`)
    timer = setTimeout(() => reject(error), ANSWER_MS)
  })
  try {
    const [row] = await Promise.race([client.query<{ readonly server_version: string }>('SHOW server_version'), late])
    return row?.server_version.split(' ')[0] ?? 'of no version'
  } finally {
    clearTimeout(timer)
    await client.close()
  }
}

/** A server that is used, not held: nothing can be done to it, and letting go of it does nothing. */
export function addressed(address: Address & { readonly version: string }): TestServer {
  const refuse = () => Promise.reject(new Error('the server is shared by the whole run; start one of your own'))
  return {
    ...address,
    url: urlOf(address),
    stop: refuse,
    start: refuse,
    restart: refuse,
    kill: refuse,
    release: () => Promise.resolve()
  }
}

export function urlOf({ host, port, user, password, database }: Omit<Address, 'kind'>): string {
  const secret = password === '' ? '' : `:${encodeURIComponent(password)}`
  return `postgres://${encodeURIComponent(user)}${secret}@${host}:${port}/${encodeURIComponent(database)}`
}

/** Short, because a socket's path may have no more than about a hundred characters. */
function socketPath(name: string): string {
  return process.platform === 'win32' ? `\\\\.\\pipe\\alkblobs-pg-${name}` : join(tmpdir(), `alkblobs-pg-${name}.sock`)
}

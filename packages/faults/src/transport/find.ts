/**
 * Finds a Toxiproxy: the one that `TOXIPROXY_URL` names, else the one of `docker/compose.yaml` where its container runs and can reach what is
 * to be reached, else one of our own in this process, so that no machine has to go without. `ALKBLOBS_FAULTS_PROXY` names one kind and
 * no other: `url`, `docker`, `own`, or `off`: then there is none, and whoever needs one fails.
 */
import { ProxyServer } from '../proxy/server.js'
import { type FaultyProxy, TransportFaults } from './client.js'

export type ProxyKind = 'url' | 'docker' | 'own'
const KINDS: readonly ProxyKind[] = ['url', 'docker', 'own']
/** How `docker/compose.yaml` publishes things: the API, the ports for proxies, and the database, which is all that its network can reach. */
const DOCKER = {
  url: 'http://127.0.0.1:18474',
  ports: 18_600,
  portsCount: 10,
  database: 15_432,
  inside: 'postgres:5432'
}

export interface Target {
  readonly host: string
  readonly port: number
}

export interface FoundProxy {
  readonly kind: ProxyKind
  readonly faults: TransportFaults
  /** A proxy of its own to what is to be reached. */
  createProxy(name: string): Promise<FaultyProxy>
  /** Ends what was started here; somebody else's is left as it is. */
  release(): Promise<void>
}

/** There is no proxy, and why. */
export class NoProxy extends Error {
  constructor(reasons: readonly string[]) {
    super(`no proxy for faults of the way: ${reasons.join('; ')}`)
    this.name = 'NoProxy'
  }
}

/** @throws NoProxy with every reason. */
export async function findProxy(target: Target, environment: NodeJS.ProcessEnv = process.env): Promise<FoundProxy> {
  const named = environment.ALKBLOBS_FAULTS_PROXY ?? ''
  if (named === 'off') throw new NoProxy(['ALKBLOBS_FAULTS_PROXY is off'])
  if (named !== '' && !KINDS.includes(named as ProxyKind)) {
    throw new NoProxy([`ALKBLOBS_FAULTS_PROXY is ${named}; it may be ${KINDS.join(', ')} or off`])
  }
  const reasons: string[] = []
  for (const kind of named === '' ? KINDS : [named as ProxyKind]) {
    const found = await find(kind, target, environment).catch((error: Error) => error.message)
    if (typeof found !== 'string') return found
    // An address that was given is meant: what does not answer there is not replaced by something else.
    if (kind === 'url' && environment.TOXIPROXY_URL) throw new NoProxy([found])
    reasons.push(`${kind}: ${found}`)
  }
  throw new NoProxy(reasons)
}

async function find(
  kind: ProxyKind,
  target: Target,
  { TOXIPROXY_URL }: NodeJS.ProcessEnv
): Promise<FoundProxy | string> {
  const release = () => Promise.resolve()
  const upstream = `${target.host}:${target.port}`
  const straight = (faults: TransportFaults) => ({
    faults,
    createProxy: (name: string) => faults.createProxy(name, upstream)
  })
  if (kind === 'url') {
    if (TOXIPROXY_URL === undefined || TOXIPROXY_URL === '') return 'TOXIPROXY_URL is not configured'
    return { kind, release, ...straight(await TransportFaults.at(TOXIPROXY_URL)) }
  }
  if (kind === 'docker') {
    if (target.port !== DOCKER.database) return 'its network reaches the database of docker/compose.yaml alone'
    return { kind, release, ...inDocker(await TransportFaults.at(DOCKER.url)) }
  }
  const server = await ProxyServer.start()
  return { kind, release: () => server.stop(), ...straight(await TransportFaults.at(server.url)) }
}

/** The ports are published one by one, so each proxy takes the first that is free. */
function inDocker(faults: TransportFaults) {
  return {
    faults,
    async createProxy(name: string): Promise<FaultyProxy> {
      const taken = new Set(Object.values(await faults.proxies()).map(({ listen }) => Number(listen.split(':').at(-1))))
      const ports = Array.from({ length: DOCKER.portsCount }, (_, at) => DOCKER.ports + at)
      const port = ports.find(each => !taken.has(each))
      if (port === undefined) throw new NoProxy(['every published port is taken'])
      return await faults.createProxy(name, DOCKER.inside, `0.0.0.0:${port}`)
    }
  }
}

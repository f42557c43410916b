import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect, createServer as createListener } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { noServer, sharedServer } from '../src/index.js'

const child = fileURLToPath(new URL('./children/holder.mjs', import.meta.url))
const built = fileURLToPath(new URL('../dist/index.js', import.meta.url))

interface Said {
  readonly line?: string
  readonly reason?: string
  readonly failed?: string
  readonly kind?: string
  readonly port?: number
}

/** A process that chooses for itself, in this environment alone. */
async function hold(env: Record<string, string>, stays = false): Promise<Said & { readonly process: ChildProcess }> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('ALKBLOBS_'))
  const started = fork(child, stays ? ['stay'] : [], { env: { ...Object.fromEntries(own), ...env } })
  onTestFinished(() => void started.kill('SIGKILL'))
  const [said] = (await once(started, 'message')) as [Said]
  return { ...said, process: started }
}

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Ending a server takes a moment; one that nobody ends stays until the end of the machine. */
async function expectGone(port: number): Promise<void> {
  await expect.poll(() => isListening(port), { timeout: 20_000 }).toBe(false)
}

/** Something that listens where a Docker daemon would; gives what `DOCKER_HOST` is then. */
async function daemon(answer: RequestListener): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'alkblobs-daemon-'))
  const server = createServer(answer)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  const socket = join(folder, 'docker.sock')
  server.listen(socket)
  await once(server, 'listening')
  return `unix://${socket}`
}

/** A daemon that has no image and reaches no registry. */
const withoutImages: RequestListener = ({ url = '' }, response) => {
  const [status, body] = url.includes('/images/create')
    ? [500, { message: 'no registry can be reached' }]
    : url.includes('/images/')
      ? [404, { message: 'No such image' }]
      : [200, url.includes('/containers/') ? [] : {}]
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

beforeAll(() => {
  if (!existsSync(built)) throw new Error('build the package first: its children import what is published')
})

const canMakeSockets = process.platform !== 'win32'

describe('the choice of a server', () => {
  test.each([
    ['its address is not told', 'reason', 'env: ALKBLOBS_PG_HOST is not set', { ALKBLOBS_PG: 'env' }],
    ['its folder is not there', 'reason', 'ALKBLOBS_PG_BIN', { ALKBLOBS_PG: 'embedded', ALKBLOBS_PG_BIN: '/nowhere' }],
    ['another part is required', 'reason', 'ALKBLOBS_PG_HOST', { ALKBLOBS_PG: 'env', ALKBLOBS_REQUIRE: 'other' }],
    ['it is required', 'failed', 'ALKBLOBS_PG_HOST', { ALKBLOBS_PG: 'env', ALKBLOBS_REQUIRE: 'faults,postgres' }],
    ['its kind is unknown', 'failed', 'ALKBLOBS_PG is mine', { ALKBLOBS_PG: 'mine', ALKBLOBS_REQUIRE: 'postgres' }]
  ] as const)('says why there is none where %s (%s)', async (_, how, why, env) => {
    const said = await hold(env)
    expect(said[how]).toContain(why)
    expect(said[how === 'reason' ? 'failed' : 'reason']).toBeUndefined()
  })

  test.runIf(canMakeSockets).each([
    ['that never answers', () => undefined, 'docker: no Docker daemon answers'],
    ['that cannot have the image', withoutImages, 'no registry can be reached']
  ] as const)('passes over a Docker daemon %s, and says so', async (_, answer, reason) => {
    const DOCKER_HOST = await daemon(answer)
    const ALKBLOBS_PG_IMAGE = `nowhere:${process.pid}`
    const [passed, insisted] = await Promise.all([
      hold({ DOCKER_HOST, ALKBLOBS_PG_IMAGE }),
      hold({ DOCKER_HOST, ALKBLOBS_PG_IMAGE, ALKBLOBS_PG: 'docker', ALKBLOBS_REQUIRE: 'postgres' })
    ])
    expect(passed.line).toContain(reason)
    expect(passed.kind).not.toBe('docker')
    expect(insisted.failed).toContain(reason)
  })

  test('passes over an address where somebody hangs up at once', async () => {
    // It reads what comes after it said goodbye: unread bytes would reset the connection, which the driver takes for an answer.
    const listener = createListener({ allowHalfOpen: true }, socket =>
      socket
        .on('error', () => undefined)
        .resume()
        .end()
    )
    listener.listen(0, '127.0.0.1')
    onTestFinished(() => void listener.close())
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    const { reason } = await hold({ ALKBLOBS_PG: 'env', ALKBLOBS_PG_HOST: '127.0.0.1', ALKBLOBS_PG_PORT: `${port}` })
    expect(reason).toContain(`no PostgreSQL answers at 127.0.0.1:${port}`)
  })

  test.skipIf(noServer() !== undefined)('takes the one of the environment before all others', async () => {
    const { host, port, user, password, database } = await sharedServer()
    const said = await hold({
      ALKBLOBS_PG_HOST: host,
      ALKBLOBS_PG_PORT: `${port}`,
      ALKBLOBS_PG_USER: user,
      ALKBLOBS_PG_PASSWORD: password,
      ALKBLOBS_PG_DB: database
    })
    expect(said).toMatchObject({ kind: 'env', port })
  })
})

describe.skipIf(noServer() !== undefined)('a shared server', () => {
  test('is one for all who hold it, and ends with the last of them, even if that was killed', async () => {
    // A choice of its own, so that this run's server is not the one that is shared.
    const env = { ALKBLOBS_PG: 'embedded', ALKBLOBS_PG_IMAGE: `apart-${process.pid}` }
    const [one, other] = await Promise.all([hold(env, true), hold(env, true)])
    expect(one.reason).toBeUndefined()
    expect(one.port).toBe(other.port)
    one.process.kill('SIGKILL')
    await once(one.process, 'exit')
    expect((await hold(env)).port).toBe(other.port)
    expect(await isListening(other.port ?? 0)).toBe(true)
    other.process.kill('SIGKILL')
    await expectGone(other.port ?? 0)
  })
})

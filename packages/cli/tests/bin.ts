/** Runs the built bin as users do: a process of its own, pipes, signals. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface BinOptions {
  readonly cwd: string
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

/** Starts the bin and leaves its stdin open. */
export function startBin(args: readonly string[], { cwd, env = {} }: BinOptions): Running {
  if (!existsSync(BIN)) throw new Error('packages/cli is not built; run `npm run build`')
  const child = spawn(process.execPath, [BIN, ...args], { cwd, env: { PATH: process.env.PATH, ...env } })
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout.on('data', chunk => out.push(chunk))
  child.stderr.on('data', chunk => err.push(chunk))
  // A command that stops reading early closes its stdin; what the test still writes then goes nowhere.
  child.stdin.on('error', () => {})
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code =>
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() })
    )
  })
  return { child, ended }
}

/** Runs the bin to its end. */
export async function bin(args: readonly string[], options: BinOptions): Promise<Ended> {
  const { child, ended } = startBin(args, options)
  child.stdin?.end(options.input ?? '')
  return ended
}

/** The objects of a `--json` run; throws for a line that is no JSON. */
export function jsonLines<T>(stdout: string): T[] {
  return stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as T)
}

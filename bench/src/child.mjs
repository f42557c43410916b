/** Runs a contestant in a process of its own, whose memory and start are nobody else's, and takes its answer from its last line. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Starts a module with one argument, an object. @throws what went wrong in it. */
export async function inChild(url, argument) {
  const { stdout } = await run(process.execPath, ['--expose-gc', fileURLToPath(url), JSON.stringify(argument)])
  return JSON.parse(stdout)
}

/** In the child: what it was started with. */
export function argument() {
  return JSON.parse(process.argv[2])
}

/** In the child: gives the answer. */
export function answer(found) {
  process.stdout.write(JSON.stringify(found))
}

/**
 * In the child: runs work and answers by how many MiB the resident set grew over what it was before, at its highest. Elsewhere than on Linux
 * the highest is that of the whole process, start included, so a little too much.
 */
export async function peakGrowth(work) {
  globalThis.gc?.()
  const idle = process.memoryUsage.rss()
  await work()
  return (peakBytes() - idle) / 2 ** 20
}

/** `maxRSS` would do, but on Linux a child inherits that of the process that started it. */
function peakBytes() {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))
  return Number(found?.[1]) * 1024
}

/** The driver alone in a process of its own: what our sessions keep from happening. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const child = fileURLToPath(new URL('./children/bare.mjs', import.meta.url))

/** Longest a scene may take: longer than everything that it waits for. */
const PLAY_MS = 12_000

interface Message {
  readonly ready?: true
  readonly pid?: number
  readonly said?: unknown
}

export interface Played {
  /** What the scene told, in order. */
  readonly said: readonly unknown[]
  /** 0 for a scene that was played to its end. */
  readonly code: number | null
  /** What the process wrote when something was thrown outside of every promise. */
  readonly stderr: string
}

/** Plays a scene of `children/bare.mjs` against that address; `act` is done when the scene is ready for it. */
export async function bare(
  scene: string,
  url: string,
  act: (pid: number) => Promise<unknown> | unknown = () => undefined
): Promise<Played> {
  const process = fork(child, [scene, url], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  onTestFinished(() => void process.kill('SIGKILL'))
  const said: unknown[] = []
  let stderr = ''
  let acting: Promise<unknown> = Promise.resolve()
  process.stderr?.on('data', chunk => {
    stderr += chunk
  })
  process.on('message', (message: Message) => {
    if (message.ready === true) {
      acting = (async () => {
        await act(message.pid ?? 0)
        if (process.connected) process.send('done')
      })()
    } else said.push(message.said)
  })
  const late = setTimeout(() => process.kill('SIGKILL'), PLAY_MS)
  const [code] = (await once(process, 'close')) as [number | null]
  clearTimeout(late)
  await acting
  return { said, code, stderr }
}

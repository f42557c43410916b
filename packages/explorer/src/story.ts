/** A schedule by its id, and what happened in it as a reader wants it. */
import type { Bug } from './bug.js'
import type { Configuration } from './configuration.js'
import { Run } from './run.js'
import { walk } from './schedule.js'
import type { Failure } from './search.js'

/** `<configuration>~<choices>`: at each step the place of the one taken, in base 36; what is left out is 0. */
export function idOf({ name }: Configuration, choices: readonly number[]): string {
  const digits = choices.map(choice => (choice < 36 ? choice.toString(36) : `(${choice})`)).join('')
  return `${name}~${digits.replace(/0+$/, '')}`
}

export function choicesOf(id: string): { readonly name: string; readonly choices: readonly number[] } {
  const at = id.lastIndexOf('~')
  const digits = id.slice(at + 1).match(/\(\d+\)|[0-9a-z]/g) ?? []
  const choices = digits.map(digit => (digit.startsWith('(') ? Number(digit.slice(1, -1)) : Number.parseInt(digit, 36)))
  return { name: id.slice(0, at), choices }
}

/** Walks the schedule of an id once more, with its story. Where the id ends, whatever came up first is taken. */
export async function replay(
  prepared: Awaited<ReturnType<typeof Run.prepare>>,
  configuration: Configuration,
  id: string,
  bug?: Bug
): Promise<Failure> {
  const { choices } = choicesOf(id)
  const run = await Run.begin(prepared, configuration, { bug, tells: true })
  await walk(run, (steps, depth) => Math.min(choices[depth] ?? 0, Math.max(steps.length - 1, 0)))
  const { story, violations } = run.world
  const lines = story.map((line, n) => `${`${n + 1}`.padStart(4)}  ${line}`)
  const head = [
    `schedule ${id}`,
    ...configuration.actors.map(({ on, does }) => `  ${on}: ${does.map(({ name }) => name).join(', ')}`)
  ]
  return { id, violations, story: [...head, ...lines, ...violations.map(what => `   !  ${what}`)].join('\n') }
}

/** What the store model has found: the shortest sequence of each, kept for every column that can carry it out. */
import { type ModelSetup, type Step, steps } from '@alkblobs/conformance/model'

export interface Regression {
  readonly name: string
  readonly setup: Partial<ModelSetup>
  readonly steps: readonly Step[]
}

const put = (content: number, more: { by?: number; verify?: boolean } = {}) =>
  steps.put.with({ by: 0, content, form: 'plain', source: 0, pin: true, verify: false, expect: 'nothing', ...more })
const release = steps.release.with({ nth: 0, which: 'held' })
const sweep = (dryRun = false) => steps.sweep.with({ by: 0, dryRun, maxDeletes: undefined })

/** Contents of these numbers are kept in the kv tier, and in the large tier where there is one. */
const [SMALL, LARGE] = [0, 1]

export const regressions: readonly Regression[] = [
  {
    name: 'a store that has made the pool goes on when another one configures the window delay',
    setup: {},
    steps: [
      put(SMALL),
      steps.second.with({}),
      steps.configure.with({ by: 1, windowDelayMs: 3_600_000 }),
      steps.delete.with({ by: 0, content: SMALL }),
      sweep()
    ]
  },
  {
    name: 'a dry run asks the sources about a key whose row a put has cancelled',
    setup: {},
    steps: [
      put(SMALL),
      release,
      sweep(),
      put(SMALL),
      release,
      steps.reference.with({ nth: 0, content: SMALL, isLive: true }),
      sweep(true),
      sweep()
    ]
  },
  {
    name: 'an entry that was healed is not broken again by a restart',
    setup: {},
    steps: [
      put(LARGE),
      steps.damage.with({ content: LARGE, how: 'flip' }),
      put(LARGE, { verify: true }),
      steps.restart.with({ by: 0, crashes: true, threshold: 0 }),
      steps.verify.with({ by: 0, repair: false }),
      steps.get.with({ by: 0, content: LARGE, way: 'bytes' })
    ]
  },
  {
    name: 'an entry of the kv tier is healed by a put for which it is too long by now',
    setup: {},
    steps: [
      put(SMALL),
      steps.restart.with({ by: 0, crashes: false, threshold: 1 }),
      steps.damage.with({ content: SMALL, how: 'truncate' }),
      put(SMALL),
      steps.verify.with({ by: 0, repair: false }),
      steps.get.with({ by: 0, content: SMALL, way: 'bytes' })
    ]
  },
  {
    name: 'a sweep that contends with one of its own store judges enumerated keys as before',
    setup: { windowDelayMs: 3_600_000 },
    steps: [
      put(SMALL),
      release,
      sweep(),
      steps.protect.with({ by: 0, kind: 'live', contents: [SMALL] }),
      steps.contendedSweep.with({ by: 0, other: 0 })
    ]
  }
]

/** The loop that makes every call of a piece of work fail, one after the other, until there is none left to fail. */
import type { ArmedFault, Fault, FaultPlan, Strike } from './plan.js'

export interface EveryFailureOptions<T = void> extends Omit<Fault, 'nth'> {
  readonly plan: FaultPlan
  /** Runs before each failure is armed; the work gets what it answers. */
  readonly prepare?: () => Promise<T>
  /** Most failures to try; more calls than that are an error of the test. Default 500. */
  readonly failuresMax?: number
}

/** One failure of the loop: which call of the work it was, from 1, and where it struck. */
export interface Failure {
  readonly call: number
  readonly struck: readonly Strike[]
  /** Ends the fault at once: from here on every call works again. */
  heal(): void
}

/**
 * Runs the work with its first call failing, then with its second, and so on, until a run in which nothing failed. The work is
 * told of no failure by this function: it has to expect whatever its calls may throw, and to look at what is left afterwards.
 * Answers where each failure struck.
 */
export async function everyFailure<T = void>(
  { plan, prepare, failuresMax = 500, ...fault }: EveryFailureOptions<T>,
  work: (failure: Failure, prepared: T) => Promise<void>
): Promise<readonly Strike[]> {
  const strikes: Strike[] = []
  for (let call = 1; call <= failuresMax; call++) {
    const prepared = (await prepare?.()) as T
    const armed = plan.arm({ ...fault, nth: call })
    let isOver = false
    const heal = () => {
      if (!isOver) end(armed)
      isOver = true
    }
    try {
      await work({ call, struck: armed.struck, heal }, prepared)
    } finally {
      heal()
    }
    const [first] = armed.struck
    if (first === undefined) return strikes
    strikes.push(first)
  }
  throw new Error(`the work made more than ${failuresMax} calls`)
}

/** A fault that had nothing left to strike is the end of the loop, not a fault that failed to fire. */
function end(armed: ArmedFault): void {
  if (armed.hasFired) armed.finish()
  else armed.retract()
}

/** Options of the store's methods, checked. */
import { optionalBoolean, optionalFunction, optionalSignal, optionalWholeNumber, optionsObject } from './arguments.js'
import type { MaintainOptions } from './maintain.js'
import type { SweepOptions } from './sweep/report.js'
import type { VerifyOptions } from './verify.js'

export interface SignalOption {
  readonly signal?: AbortSignal
}

export interface GetOptions extends SignalOption {
  /** Whether whole reads are verified against the key. Default: as the store was opened. */
  readonly verify?: boolean
}

export interface ListOptions extends SignalOption {
  /** Starts after this key (exclusive). */
  readonly after?: string
}

/** Each of these throws InvalidArgumentError naming the option, or the reason of a signal that has fired. */
export function signalOf(options: SignalOption | undefined): AbortSignal | undefined {
  const signal = optionalSignal('options.signal', optionsObject('options', options).signal)
  signal?.throwIfAborted()
  return signal
}

export function getOptionsOf(options: GetOptions | undefined, verifyDefault: boolean) {
  const { verify } = optionsObject('options', options)
  return { signal: signalOf(options), verify: optionalBoolean('options.verify', verify, verifyDefault) }
}

/** A sweep that is cancelled before it begins reports that like one cancelled later. */
export function sweepOptionsOf(options: SweepOptions | undefined): SweepOptions {
  const { signal, onProgress, dryRun, maxDeletes, maxDurationMs } = optionsObject('options', options)
  optionalSignal('options.signal', signal)
  optionalFunction('options.onProgress', onProgress)
  optionalBoolean('options.dryRun', dryRun, false)
  optionalWholeNumber('options.maxDeletes', maxDeletes, 0, { min: 0 })
  optionalWholeNumber('options.maxDurationMs', maxDurationMs, 0, { min: 0 })
  return options ?? {}
}

export function maintainOptionsOf(options: MaintainOptions | undefined): MaintainOptions {
  const { scan } = optionsObject('options', options)
  signalOf(options)
  optionalBoolean('options.scan', scan, false)
  return options ?? {}
}

export function verifyOptionsOf(options: VerifyOptions | undefined): VerifyOptions {
  const { onProgress, repair } = optionsObject('options', options)
  signalOf(options)
  optionalFunction('options.onProgress', onProgress)
  optionalBoolean('options.repair', repair, false)
  return options ?? {}
}

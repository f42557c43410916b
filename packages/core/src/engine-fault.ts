/** How an engine names a failure that no driver named for it. */
import type { ErrorCode } from './engine.js'

/** An engine's own finding (`newer`, `foreign`, `gone`, …). `classify` answers its `code`. Never leaves core unwrapped. */
export class EngineFault extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'EngineFault'
    this.code = code
  }
}

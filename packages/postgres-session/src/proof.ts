/**
 * What a server may say while it is proved who one is (`R`, an int32 for its kind, and what belongs to that):
 *
 *   0 it is proved   3 the password is wanted   5 its MD5, with 4 bytes of salt   10 SCRAM, one of these mechanisms
 *   11 SCRAM's challenge, `r=nonce,s=salt,i=iterations`   12 the server's own proof, which the driver checks
 */
import { EngineFault } from '@alkblobs/core/engine'
import { unasked, unreadable } from './failure.js'

export const PROVED = 0
const PASSWORD = 3
const MD5 = 5
const SCRAM = 10
const CHALLENGE = 11
const OWN_PROOF = 12

/** What may come after which kind; what SCRAM has begun ends with the server's own proof. */
const AFTER: ReadonlyMap<number | undefined, readonly number[]> = new Map([
  [undefined, [PROVED, PASSWORD, MD5, SCRAM]],
  [PASSWORD, [PROVED]],
  [MD5, [PROVED]],
  [SCRAM, [CHALLENGE]],
  [CHALLENGE, [OWN_PROOF]],
  [OWN_PROOF, [PROVED]]
])

/** A nonce of what can be printed, but no comma; the salt in base64. */
const CHALLENGE_TEXT = /^r=[\x21-\x2b\x2d-\x7e]+,s=[A-Za-z0-9+/]+={0,2},i=([1-9][0-9]*)$/
/** The driver counts them while everything else waits: so many take it a fifth of a second. A server has 4096 unless it is told otherwise. */
const ITERATIONS_MAX = 1_000_000

/** @returns the kind. @throws EngineFault for what does not belong behind a message of that kind, or cannot be answered. */
export function checkProof(before: number | undefined, body: Buffer): number {
  const kind = body.readUInt32BE(0)
  const next = AFTER.get(before) ?? []
  if (!next.includes(kind)) {
    if (before !== undefined) throw unasked()
    throw unspoken('wants a proof of who one is that is not known here')
  }
  if ((kind === PROVED || kind === PASSWORD) && body.length !== 4) throw unreadable()
  if (kind === MD5 && body.length !== 8) throw unreadable()
  const text = body.toString('latin1', 4)
  if (kind === SCRAM && !text.split('\0').includes('SCRAM-SHA-256')) throw unspoken('knows no SCRAM-SHA-256')
  if (kind === CHALLENGE) checkChallenge(text)
  return kind
}

function checkChallenge(text: string): void {
  const iterations = CHALLENGE_TEXT.exec(text)?.[1]
  if (iterations === undefined) throw unreadable()
  if (Number(iterations) > ITERATIONS_MAX) throw unspoken(`wants more than ${ITERATIONS_MAX} iterations of SCRAM`)
}

function unspoken(what: string): EngineFault {
  return new EngineFault('denied', `the server ${what}`)
}

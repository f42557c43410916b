/**
 * Sessions with a PostgreSQL server that end when they should: every statement has a deadline, a dead connection is never
 * used again, and a commit whose answer was lost says so.
 *
 * To find the way: `connection.ts` guards the driver, `sessions.ts` lends sessions, `transaction.ts` says what is known about a
 * commit, `lane.ts` speaks past the driver, `copy.ts` moves bytes in bulk.
 */

export type { Row } from './answers.js'
export { byteaArray, float8Array, int4, int4Array, int8, int8Array, oid, textArray } from './binary.js'
export { classifyPostgres } from './classify.js'
export type { ConnectionConfig, Timeouts, Tls } from './config.js'
export { copyLongRows, type Field } from './copy-format.js'
export { watch } from './deadline.js'
export { ConnectionError, ServerError, withoutSecrets } from './failure.js'
export type { HeldSession } from './held.js'
export { qualified, quoteIdentifier } from './identifiers.js'
export { identityOf } from './identity.js'
export type { Answer, Statement } from './lane.js'
export type { Binary } from './messages.js'
export type { Session } from './session.js'
export { Sessions } from './sessions.js'
export type { Decision, Exchange } from './transaction.js'
export type { Param, Scalar, Value } from './values.js'

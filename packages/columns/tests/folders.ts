/**
 * Where the columns of a test run are collected, those of each part of `npm test` in a folder of their own, and the report they are
 * merged into.
 */
import { fileURLToPath } from 'node:url'

const results = new URL('../../../test-results/', import.meta.url)

/** A run on another server than that of `npm test` has a report of its own, of the columns on that server. */
const run = process.env.ALKBLOBS_TEST_RUN ?? ''
export const isApart = run.startsWith('postgres-')

export const columnFolder = fileURLToPath(new URL('conformance/embedded', results))
export const postgresFolder = fileURLToPath(new URL(`conformance/${isApart ? run : 'postgres'}`, results))
export const reportFile = fileURLToPath(new URL(isApart ? `conformance-${run}.json` : 'conformance.json', results))

/**
 * Where the columns of a test run are collected, those of each part of `npm test` in a folder of their own, and the report they are
 * merged into.
 */
import { fileURLToPath } from 'node:url'

const results = new URL('../../../test-results/', import.meta.url)

export const columnFolder = fileURLToPath(new URL('conformance/embedded', results))
export const postgresFolder = fileURLToPath(new URL('conformance/postgres', results))
export const reportFile = fileURLToPath(new URL('conformance.json', results))

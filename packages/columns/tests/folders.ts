/** Where the columns of a test run are collected, and the report they are merged into. */
import { fileURLToPath } from 'node:url'

const results = new URL('../../../test-results/', import.meta.url)

export const columnFolder = fileURLToPath(new URL('conformance', results))
export const reportFile = fileURLToPath(new URL('conformance.json', results))

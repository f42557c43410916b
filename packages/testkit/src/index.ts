/**
 * PostgreSQL for the tests of this repository: a server that needs nothing installed by hand, databases and schemas that
 * go with the test that made them, and a count of what was left.
 */
export { Commits, type Loss } from './commits.js'
export {
  copyDatabase,
  freshDatabase,
  freshRole,
  freshSchema,
  type TestDatabase,
  type TestRole,
  type TestSchema
} from './fresh.js'
export { type Residue, residue } from './residue.js'
export { type ServerOptions, startServer, type TestServer } from './server.js'
export { holdForRun, isRequired, noServer, sharedServer } from './shared.js'
export { type Client, clientOf } from './sql.js'

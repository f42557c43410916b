/** The server of this run, as the tests of every package find it. */
import type { Address } from './keeper.js'
import { addressed, holdShared, type TestServer } from './server.js'

/** How the set-up of a test run tells its workers: an address, or why there is none. */
const VARIABLE = 'ALKBLOBS_TEST_SERVER'
type Told = { readonly address: Address & { readonly version: string } } | { readonly unavailable: string }

let held: Promise<TestServer> | undefined

/**
 * The server that the whole run shares. In a test run it is the one that the set-up holds; elsewhere it is held by this
 * process from the first call on, until `release` or its end.
 * @throws Error with the reasons why there is none.
 */
export function sharedServer(): Promise<TestServer> {
  const told = whatWasTold()
  if (told === undefined) {
    held ??= holdShared().then(({ server }) => server)
    return held
  }
  return 'address' in told ? Promise.resolve(addressed(told.address)) : Promise.reject(new Error(told.unavailable))
}

/** Why the tests have no server, for the title of what is skipped; `undefined` if they have one. Asks nobody. */
export function noServer(): string | undefined {
  const told = whatWasTold()
  if (told === undefined) return 'the test run has no set-up for PostgreSQL'
  return 'unavailable' in told ? told.unavailable : undefined
}

/** Whether a missing server is a failure rather than a reason to skip. */
export function isRequired(): boolean {
  return (process.env.ALKBLOBS_REQUIRE ?? '').split(',').includes('postgres')
}

/** Holds the server for the time of a run and tells every worker. @throws Error if there is none although it is required. */
export async function holdForRun(): Promise<{ readonly line: string; release(): Promise<void> }> {
  try {
    const { server, refusals } = await holdShared()
    const { kind, host, port, user, password, database, version } = server
    tell({ address: { kind, host, port, user, password, database, version } })
    const instead = refusals.length === 0 ? '' : ` (${refusals.join('; ')})`
    return { line: `PostgreSQL ${version} (${kind}) at ${host}:${port}${instead}`, release: () => server.release() }
  } catch (error) {
    if (isRequired()) throw error
    const unavailable = error instanceof Error ? error.message : String(error)
    tell({ unavailable })
    return { line: unavailable, release: () => Promise.resolve() }
  }
}

function tell(told: Told): void {
  process.env[VARIABLE] = JSON.stringify(told)
}

function whatWasTold(): Told | undefined {
  const text = process.env[VARIABLE]
  return text === undefined ? undefined : (JSON.parse(text) as Told)
}

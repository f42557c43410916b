/** What every session sets when it starts, so that no default of the role, the database or the server decides. */
import type { CheckedConfig, Timeouts } from './config.js'

/** The server's own limit for what a client that has vanished left running; calls are bounded by their deadlines. */
const STATEMENT_TIMEOUT_MS = 15 * 60 * 1000
/** A process that was suspended in the middle of a transaction holds up others no longer than this. */
const IDLE_IN_TRANSACTION_MS = 60_000

function settings({ applicationName }: CheckedConfig, { lockTimeoutMs }: Timeouts): Readonly<Record<string, string>> {
  return {
    application_name: applicationName,
    // Names in statements are qualified; nothing that somebody puts into a schema on the path is ever meant.
    search_path: 'pg_catalog, pg_temp',
    TimeZone: 'UTC',
    DateStyle: 'ISO, MDY',
    bytea_output: 'hex',
    standard_conforming_strings: 'on',
    // Lists travel as the text of arrays, in which NULL may stand.
    array_nulls: 'on',
    transform_null_equals: 'off',
    // The names of types are compared.
    quote_all_identifiers: 'off',
    // 0 would mean for ever.
    lock_timeout: `${Math.max(1, Math.ceil(lockTimeoutMs))}`,
    statement_timeout: `${STATEMENT_TIMEOUT_MS}`,
    idle_in_transaction_session_timeout: `${IDLE_IN_TRANSACTION_MS}`,
    // Only the holder of a session knows how long it may be silent or a transaction may last.
    idle_session_timeout: '0',
    transaction_timeout: '0',
    default_transaction_isolation: 'read committed',
    // Compiling costs more than any statement here takes.
    jit: 'off',
    // So that a lock of a client whose machine has gone is free again in about half a minute instead of two hours.
    tcp_keepalives_idle: '10',
    tcp_keepalives_interval: '5',
    tcp_keepalives_count: '3',
    tcp_user_timeout: '25000',
    // A server that waits for a lock looks whether its client is still there.
    client_connection_check_interval: '1000'
  }
}

/**
 * One statement that makes all settings that this server knows, and answers the process behind the session, the server's version and
 * when the process started. `synchronous_commit` is only ever made stricter: whoever chose to wait for replicas does so. Servers on
 * other systems than Linux refuse to look for vanished clients.
 */
export const SETTING_STATEMENT = `
  SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('server_version_num')::pg_catalog.int4,
    (SELECT EXTRACT(epoch FROM backend_start)::pg_catalog.text
     FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())),
    pg_catalog.count(pg_catalog.set_config(s.name, v.value, false))
  FROM (SELECT * FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
    UNION ALL SELECT 'synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit')
      WHEN 'off' THEN 'on' ELSE pg_catalog.current_setting('synchronous_commit') END) AS v (name, value)
  JOIN pg_catalog.pg_settings AS s ON s.name OPERATOR(pg_catalog.=) v.name
  WHERE v.name OPERATOR(pg_catalog.<>) 'client_connection_check_interval'
     OR pg_catalog.version() OPERATOR(pg_catalog.~) 'linux'`

/** Its parameters: names and values. */
export function settingParams(config: CheckedConfig, timeouts: Timeouts): readonly (readonly string[])[] {
  const wanted = settings(config, timeouts)
  return [Object.keys(wanted), Object.values(wanted)]
}

/**
 * A store beside an application in the same database, through its whole life: everything of the application's, its objects, rows,
 * roles, settings, locks, sessions and large objects, is found as it was left, whatever its role prefers and its search path hides.
 */
import { openStore, type Store } from '@alkblobs/core'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres as kvPostgres } from '@alkblobs/engine-postgres'
import { freshRole, type TestDatabase, type TestRole } from '@alkblobs/testkit'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { atEnd, chunksOf, contentOf, databaseOf, MIB, onServer } from './pools.js'

/** The schemas that a store may make, under their default names. */
const OURS = `('alkblobs', 'alkblobs_pglo')`
const THEIRS = `nspname NOT IN ${OURS} AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'`

/** What an application may have: names that look like ours, types, rights, row security, triggers, large objects of its own. */
const APPLICATION = (owner: string, role: string) => `
  CREATE SCHEMA app; CREATE SCHEMA "Alkblobs"; CREATE SCHEMA "alkblobs""s schema"; CREATE SCHEMA "ALKBLOBS_PGLO";
  CREATE TYPE app.state AS ENUM ('draft', 'sent'); CREATE DOMAIN app.code AS text CHECK (value <> '');
  CREATE TYPE public.blob AS (key text, length bigint);
  CREATE TABLE public.entries (id int PRIMARY KEY, note text); INSERT INTO public.entries VALUES (1, 'mine');
  CREATE TABLE public.alkblobs (part text, version int); INSERT INTO public.alkblobs VALUES ('catalog', 99);
  CREATE TABLE "Alkblobs".entries (key bytea PRIMARY KEY); INSERT INTO "Alkblobs".entries VALUES ('mine');
  CREATE TABLE "alkblobs""s schema".meta (one boolean, pool_id text); INSERT INTO "alkblobs""s schema".meta VALUES (true, 'mine');
  CREATE TABLE "ALKBLOBS_PGLO".lo_entries (loid oid); CREATE SEQUENCE app.numbers; SELECT nextval('app.numbers');
  CREATE TABLE app.files (id serial PRIMARY KEY, "blob key" text, state app.state DEFAULT 'draft', note app.code);
  CREATE INDEX ON app.files ("blob key"); INSERT INTO app.files (note) VALUES ('references nothing');
  CREATE TABLE app.secrets (id int, owner text); ALTER TABLE app.secrets ENABLE ROW LEVEL SECURITY;
  CREATE POLICY mine ON app.secrets USING (owner = current_user); INSERT INTO app.secrets VALUES (1, 'somebody');
  CREATE FUNCTION app.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note = 'touched'; RETURN NEW; END $$;
  CREATE TRIGGER touch BEFORE UPDATE ON app.files FOR EACH ROW EXECUTE FUNCTION app.touch();
  CREATE VIEW app.sent AS SELECT * FROM app.files WHERE state = 'sent';
  CREATE TABLE app.pictures (id int, image oid, thumbnail oid);
  INSERT INTO app.pictures VALUES (1, lo_from_bytea(0, 'a picture'), lo_from_bytea(0, repeat('a', 5000)::bytea));
  SELECT lo_from_bytea(0, 'an object that no row names');
  CREATE TABLE app.ddl (n serial, tag text, place text);
  CREATE FUNCTION app.log_ddl() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN INSERT INTO app.ddl (tag, place) SELECT command_tag, coalesce(schema_name, object_identity)
       FROM pg_event_trigger_ddl_commands(); END $$;
  CREATE EVENT TRIGGER log_ddl ON ddl_command_end EXECUTE FUNCTION app.log_ddl();
  ALTER SCHEMA app OWNER TO ${owner}; ALTER TABLE app.files OWNER TO ${owner}; ALTER TABLE app.pictures OWNER TO ${owner};
  GRANT USAGE ON SCHEMA app TO ${role}; GRANT SELECT ("blob key") ON app.files TO ${role};
  GRANT CREATE, TEMPORARY ON DATABASE current_db TO ${role}; ALTER DATABASE current_db SET search_path = app, public`

/** What a role may prefer; each of these has broken somebody's client. */
const PREFERENCES = {
  search_path: 'evil, pg_catalog, app, public',
  statement_timeout: `'2s'`,
  lock_timeout: '1',
  idle_in_transaction_session_timeout: '20',
  idle_session_timeout: `'2s'`,
  synchronous_commit: 'off',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  standard_conforming_strings: 'off',
  bytea_output: 'escape',
  DateStyle: `'SQL, DMY'`,
  IntervalStyle: 'iso_8601',
  TimeZone: `'America/Los_Angeles'`,
  client_encoding: 'LATIN1',
  array_nulls: 'off',
  quote_all_identifiers: 'on',
  enable_indexscan: 'off',
  transform_null_equals: 'on',
  row_security: 'off'
}

/** Functions of the server's own names, ahead of them on the role's search path, that fail whoever calls them. */
const EVIL = [
  'now() RETURNS timestamptz',
  'clock_timestamp() RETURNS timestamptz',
  'statement_timestamp() RETURNS timestamptz',
  'pg_backend_pid() RETURNS int',
  'set_config(text, text, boolean) RETURNS text',
  'current_setting(text) RETURNS text',
  'encode(bytea, text) RETURNS text',
  'decode(text, text) RETURNS bytea',
  'octet_length(bytea) RETURNS int',
  'lo_get(oid, bigint, int) RETURNS bytea',
  'lo_from_bytea(oid, bytea) RETURNS oid',
  'lo_unlink(oid) RETURNS int',
  'unnest(text[]) RETURNS SETOF text',
  'pg_try_advisory_lock(bigint) RETURNS boolean',
  'version() RETURNS text'
].map(
  signature => `CREATE FUNCTION evil.${signature} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the evil one'; END $$`
)

interface Application {
  readonly db: TestDatabase
  readonly role: TestRole
  /** A connection that is open from before the store's life to after it. */
  readonly own: postgres.Sql
  readonly heard: string[]
}

async function application(): Promise<Application> {
  const db = await databaseOf()
  // Objects of the application's own would count as nobody's.
  atEnd(async () => await db.query('SELECT count(lo_unlink(oid)) FROM pg_largeobject_metadata'))
  const [owner, role] = [await freshRole(db), await freshRole(db)]
  for (const each of [owner, role]) atEnd(() => each.drop())
  const inDatabase = (text: string) => db.query(text.replaceAll('current_db', db.database))
  await inDatabase(APPLICATION(owner.name, role.name))
  await inDatabase('CREATE SCHEMA evil; CREATE TABLE evil.pg_class (oid int); CREATE TABLE evil.entries (key int)')
  for (const evil of EVIL) await db.query(evil)
  await inDatabase(`GRANT USAGE ON SCHEMA evil TO ${role.name}`)
  for (const [name, value] of Object.entries(PREFERENCES)) {
    await db.query(`ALTER ROLE ${role.name} SET ${name} = ${value}`)
  }
  atEnd(() => db.query('DROP EVENT TRIGGER log_ddl'))
  await db.query('DELETE FROM app.ddl')
  const own = postgres({
    host: db.host,
    port: db.port,
    username: db.user,
    password: db.password,
    database: db.database,
    max: 1
  })
  atEnd(() => own.end({ timeout: 1 }))
  await own.unsafe(`SET search_path = "Alkblobs", app; SET work_mem = '5MB'; CREATE TEMPORARY TABLE entries (id int);
    INSERT INTO pg_temp.entries VALUES (7); PREPARE mine AS SELECT 1; SELECT pg_advisory_lock(1), pg_advisory_lock(1, 2)`)
  const heard: string[] = []
  for (const channel of ['alkblobs', 'entries']) await own.listen(channel, payload => heard.push(payload))
  return { db, role, own, heard }
}

/** Everything that could be another one afterwards, each by the name of where it is seen. */
const SNAPSHOT = {
  namespaces: `SELECT oid, nspname, nspowner, nspacl::text FROM pg_namespace WHERE ${THEIRS}`,
  relations: `SELECT c.oid, nspname, relname, relkind, relowner, relfilenode, reltoastrelid, reltablespace, relpersistence,
      relacl::text, reloptions::text, relhasrules, relhastriggers, relrowsecurity, relforcerowsecurity, relreplident
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE ${THEIRS}`,
  columns: `SELECT attrelid, attnum, attname, atttypid, attnotnull, attstorage, attacl::text, attisdropped, attstattarget
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace WHERE ${THEIRS}`,
  indexes: `SELECT indexrelid, pg_get_indexdef(indexrelid) AS definition, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indrelid
    JOIN pg_namespace n ON n.oid = relnamespace WHERE ${THEIRS}`,
  constraints: `SELECT k.oid, conname, pg_get_constraintdef(k.oid) AS definition FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = connamespace WHERE ${THEIRS}`,
  triggers: `SELECT t.oid, tgname, tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
    JOIN pg_namespace n ON n.oid = relnamespace WHERE ${THEIRS}`,
  policies: 'SELECT oid, polname, polrelid FROM pg_policy',
  functions: `SELECT p.oid, proname, prosrc, proacl::text, proowner FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    WHERE ${THEIRS} OR (nspname = 'pg_catalog' AND (proname LIKE 'lo%' OR proname LIKE 'pg_adv%'))`,
  types: `SELECT t.oid, typname, typowner, typacl::text FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE ${THEIRS}`,
  enums: 'SELECT oid, enumtypid, enumlabel FROM pg_enum',
  roles:
    'SELECT oid, rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit, rolvaliduntil FROM pg_roles',
  passwords: 'SELECT oid, rolpassword FROM pg_authid',
  members: 'SELECT roleid, member, grantor, admin_option FROM pg_auth_members',
  preferences: 'SELECT setdatabase, setrole, setconfig::text FROM pg_db_role_setting',
  defaults: 'SELECT oid, defaclrole, defaclacl::text FROM pg_default_acl',
  database: 'SELECT oid, datdba, datacl::text, datconnlimit FROM pg_database WHERE datname = current_database()',
  eventTriggers: 'SELECT oid, evtname, evtenabled FROM pg_event_trigger',
  extensions: 'SELECT oid, extname, extversion FROM pg_extension',
  publications: 'SELECT oid, pubname FROM pg_publication',
  comments: `SELECT objoid, objsubid, description FROM pg_description JOIN pg_class c ON c.oid = objoid
    JOIN pg_namespace n ON n.oid = relnamespace WHERE ${THEIRS}`,
  numbers: 'SELECT last_value, is_called FROM app.numbers',
  files: 'SELECT ctid::text, xmin::text, xmax::text, f::text FROM app.files f',
  secrets: 'SELECT ctid::text, xmin::text, xmax::text, s::text FROM app.secrets s',
  pictures: 'SELECT ctid::text, xmin::text, xmax::text, p::text FROM app.pictures p',
  entries: 'SELECT ctid::text, xmin::text, xmax::text, e::text FROM public.entries e',
  parts: 'SELECT ctid::text, xmin::text, xmax::text, a::text FROM public.alkblobs a',
  quoted: 'SELECT ctid::text, xmin::text, xmax::text, e::text FROM "Alkblobs".entries e',
  metas: 'SELECT ctid::text, xmin::text, xmax::text, m::text FROM "alkblobs""s schema".meta m',
  /** Whether made by the application's owner or by nobody it knows; those of the store's role are the store's. */
  objects: `SELECT m.oid, lomowner, lomacl::text, md5(lo_get(m.oid)) AS content FROM pg_largeobject_metadata m
    WHERE lomowner <> (SELECT oid FROM pg_roles WHERE rolname = '$role')`
}

async function snapshot({ db, role, own }: Application): Promise<Record<string, string[]>> {
  const seen: Record<string, string[]> = {}
  for (const [name, text] of Object.entries(SNAPSHOT)) {
    const rows = await db.query(text.replace('$role', role.name))
    seen[name] = rows.map(row => JSON.stringify(row)).sort()
  }
  const mine = async (text: string) => (await own.unsafe(text)).map(row => JSON.stringify(row)).sort()
  seen.settings = await mine('SELECT name, setting, source FROM pg_settings')
  seen.prepared = await mine(`SELECT name, statement FROM pg_prepared_statements WHERE name = 'mine'`)
  seen.temporary = await mine('SELECT ctid::text, xmin::text, id FROM pg_temp.entries')
  seen.locks = await mine(`SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'advisory'`)
  return seen
}

/** All a store can be asked for, some of it failing, once and again after it was opened anew. */
async function live({ db, role }: Application): Promise<void> {
  const url = new URL(db.url)
  url.username = role.name
  url.password = role.password
  const open = () =>
    openStore({
      kv: kvPostgres({ url: url.href }),
      large: pglo({ url: url.href }),
      threshold: 1_000,
      windowDelayMs: 0,
      trashDelayMs: 0
    })
  const contents = [contentOf('small', 500), contentOf('large', 5_000), contentOf('long', 3 * MIB)]
  const first = await open()
  const keys = await putAll(first, contents)
  await work(first, db, keys)
  await first.close()
  const second = await open()
  for (const [i, key] of keys.entries()) {
    expect(Buffer.compare((await (await second.get(key))?.bytes()) ?? Buffer.alloc(0), contents[i] as Buffer)).toBe(0)
  }
  await work(second, db, keys)
  await second.close()
}

async function putAll(store: Store, contents: readonly Uint8Array[]): Promise<string[]> {
  const keys: string[] = []
  for (const content of contents) {
    const receipt = await store.put(chunksOf(content))
    keys.push(receipt.key)
    await receipt.release()
  }
  return keys
}

async function work(store: Store, db: TestDatabase, keys: readonly string[]): Promise<void> {
  const protection = await store.protect({ table: 'app.files', column: 'blob key' })
  store.protect({ name: 'documents', live: () => keys })
  const [dead] = await putAll(store, [contentOf('dead', 100_000), contentOf('dead too', 10)])
  const receipt = await store.put('referenced')
  await db.query('INSERT INTO app.files ("blob key") VALUES ($1)', [receipt.key])
  await receipt.release()
  const pin = await store.pin(keys[0] as string)
  await expect(store.delete(keys[0] as string)).rejects.toThrow()
  await pin?.release()
  await expect(store.put(failing(), { length: 3 * MIB })).rejects.toThrow('the producer fails')
  expect(await store.sweep({ dryRun: true })).toMatchObject({ candidatesStaged: 2 })
  expect(await store.sweep()).toMatchObject({ candidatesStaged: 2, live: keys.length + 1 })
  expect(await store.sweep()).toMatchObject({ deleted: 2 })
  expect(await store.has(dead as string)).toBe(false)
  expect(await store.maintain({ scan: true })).toMatchObject({ orphans: 0, failed: [] })
  expect(await store.verify({ repair: true })).toMatchObject({ clean: true, entries: keys.length + 1 })
  await store.configure({ windowDelayMs: 0 })
  await db.query('DELETE FROM app.files WHERE "blob key" = $1', [receipt.key])
  expect(await store.delete(receipt.key)).toBe(true)
  protection.remove()
  await store.why(keys[0] as string)
  await store.usage()
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield* chunksOf(contentOf('failing', 2 * MIB))
  throw new Error('the producer fails')
}

/** Two snapshots, told apart by where they differ. */
function expectSame(after: Record<string, string[]>, before: Record<string, string[]>): void {
  for (const [name, rows] of Object.entries(before)) expect({ [name]: after[name] }).toEqual({ [name]: rows })
}

onServer('an application', () => {
  it('finds everything of its own as it left it, while a store lives beside it and when it is gone', async () => {
    const app = await application()
    const { db, own, heard } = app
    const all = (await db.query('SELECT oid::int FROM pg_class WHERE oid >= 16384 ORDER BY 1')).length
    const before = await snapshot(app)
    expect(
      Object.entries(before).filter(
        ([name, rows]) => rows.length === 0 && !['members', 'defaults', 'publications', 'comments'].includes(name)
      )
    ).toEqual([])
    await live(app)
    expectSame(await snapshot(app), before)
    expect(heard).toEqual([])
    // Whatever was defined was defined in the store's own schemas, or lasted as long as a session.
    const places = await db.query<{ place: string }>('SELECT DISTINCT place FROM app.ddl')
    expect(
      places
        .map(({ place }) => place)
        .filter(place => place !== 'pg_temp')
        .sort()
    ).toEqual(['alkblobs', 'alkblobs_pglo'])
    const [{ pid } = { pid: 0 }] = await own`SELECT pg_backend_pid() AS pid`
    expect(
      await db.query(
        `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid <> $1 AND database =
      (SELECT oid FROM pg_database WHERE datname = current_database())`,
        [pid]
      )
    ).toEqual([])
    // As the guide says to take a pool down.
    await db.query(`WITH gone AS (DELETE FROM alkblobs_pglo.lo_entries RETURNING loid) SELECT count(lo_unlink(loid)) FROM gone;
      DROP SCHEMA alkblobs_pglo, alkblobs CASCADE`)
    expectSame(await snapshot(app), before)
    expect((await db.query('SELECT oid::int FROM pg_class WHERE oid >= 16384')).length).toBe(all)
    expect(await db.query('SELECT count(*)::int AS n FROM pg_largeobject_metadata')).toEqual([{ n: 3 }])
  })
})

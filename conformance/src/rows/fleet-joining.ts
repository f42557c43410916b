/** Which stores may join a fleet, and what they share once they have. */
import type { ServerCatalog, ServerMedium } from '@alkblobs/core/engine'
import { FleetRefused, InvalidArgument } from '../codes.js'
import { bytesOf, contentMatrix, tierLengths } from '../content.js'
import { codeOf, equal, present, refuses, sameBytes } from '../expect.js'
import { type OpenTuning, oracleOf, type StoreFactory } from '../factory.js'
import { row } from '../row.js'
import { collect, putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { type Overrides, override, type Tap, tapped } from '../tap.js'

const brokenBy = (clause: string) => (error: unknown) =>
  codeOf(error) === FleetRefused && (error as { clause?: unknown }).clause === clause

type Server = ServerCatalog | ServerMedium

/** A tap over what an engine says of its server; an engine that is on none is left as it is. */
function onServer(part: 'catalog' | 'bodies', change: (server: Server) => Partial<ServerCatalog> | undefined): Tap {
  return {
    [part](inner: { readonly server?: Server }) {
      if (inner.server === undefined) return {}
      const changed = change(inner.server)
      return { server: changed && override(inner.server, changed as Overrides<Server>) }
    }
  }
}

const wrapping = (tap: Tap): OpenTuning => ({ wrap: definition => tapped(definition, tap) })

/** Another instance that sees the same pool. */
async function another(factory: StoreFactory, store: Parameters<NonNullable<StoreFactory['second']>>[0], tuning = {}) {
  return present(await factory.second?.(store, tuning), 'a second instance')
}

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const constructs = row({
  name: 'every_fleet_valid_configuration_constructs',
  statement:
    'Every configuration that keeps the rules opens, under any label, and what one instance puts the others read, count and collect.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-7',
  needs: ['fleet', 'second'],
  async run(factory) {
    const first = await factory.open({ instanceId: 'twin' })
    const others = [
      await another(factory, first, { instanceId: 'twin' }),
      await another(factory, first, { pinTtlMs: 3_600_000 }),
      await another(factory, first)
    ]
    for (const length of tierLengths(factory)) {
      const { key } = await putReleased(first, bytesOf(length, 1))
      for (const other of others) {
        sameBytes(await present(await other.get(key), 'the entry').bytes(), bytesOf(length, 1), 'what others put')
        equal((await other.put(bytesOf(length, 1))).created, false, 'the same content is one entry for all')
      }
    }
    const entries = tierLengths(factory).length
    for (const store of [first, ...others]) equal((await store.usage()).entries, entries, 'all see one pool')
    for (const other of others) await other.close()
    first.protect(sourceOver([]))
    equal((await collect(first)).deleted, entries, 'one of them collects it')
    await first.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const guards = row({
  name: 'the_constructor_entry_guards_reject_the_degenerate_tunings',
  statement:
    'A pin life without room for renewals, a catalog on no server, a server that cannot host, and fewer than two sessions are each refused by their own clause, and change nothing.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-8',
  needs: ['fleet', 'second', 'medium'],
  async run(factory) {
    const store = await factory.open()
    const oracle = oracleOf(factory, store)
    await putReleased(store, bytesOf(10))
    await releasesArrived(store)
    const before = await oracle.counts()
    for (const pinTtlMs of [0, 2, -60_000, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
      await refuses(() => factory.second?.(store, { pinTtlMs }), brokenBy('pin-ttl'), `a pin life of ${pinTtlMs} ms`)
      const fleet = { sharedMedia: 'operator-declared', pinTtlMs } as const
      await refuses(
        () => factory.second?.(store, { fleet }),
        brokenBy('pin-ttl'),
        `a fleet's pin life of ${pinTtlMs} ms`
      )
    }
    for (const fleet of [{ sharedMedia: 'yes' }, { instanceId: 'a label' }, 'fleet'] as never[])
      await refuses(() => factory.second?.(store, { fleet }), InvalidArgument, 'what is no option')
    const taps: [clause: string, tap: Tap][] = [
      ['catalog', onServer('catalog', () => undefined)],
      ['server', onServer('catalog', () => ({ unfit: async () => 'it is too old' }))],
      ['sessions', onServer('catalog', () => ({ sessionsMax: 1 }))]
    ]
    for (const [clause, tap] of taps)
      await refuses(() => factory.second?.(store, wrapping(tap)), brokenBy(clause), `the clause ${clause}`)
    equal(await oracle.counts(), before, 'a refusal changes nothing')
    equal((await store.put(bytesOf(10))).created, false, 'and the pool goes on')
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const undeclared = row({
  name: 'a_folder_that_nobody_declared_as_shared_is_refused',
  statement:
    'Files can be on one file system or on many and nobody can tell: without a declaration a fleet does not open.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-8',
  needs: ['fleet', 'root', 'foreign'],
  async run(factory) {
    await refuses(() => factory.open({ fleet: {} }), brokenBy('large-medium'), 'a folder without a declaration')
    const store = await factory.open()
    await putReleased(store, bytesOf(factory.threshold ?? 0, 1))
    for (const length of tierLengths(factory)) await putReleased(store, bytesOf(length, 2))
    // The wrong folder mounted under the right name: what carries the claim of another pool is refused whatever is declared.
    const other = (error: unknown) => (error as { reason?: unknown }).reason === 'media'
    await refuses(
      async () => await (await factory.foreign?.(store))?.put(bytesOf((factory.threshold ?? 0) + 1, 3)),
      other,
      'a folder of another pool'
    )
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const consolidation = row({
  name: 'the_consolidation_fleet_constructs_over_one_shared_instance',
  statement: 'Large objects on the server of the catalog need no declaration: the server itself says that it is one.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-7',
  needs: ['fleet', 'second', 'large-objects'],
  async run(factory) {
    const asked: string[] = []
    const spy = (part: 'catalog' | 'bodies') =>
      onServer(part, server => ({
        async identity(call) {
          const found = await server.identity(call)
          asked.push(found.system)
          return found
        }
      }))
    const wrap: OpenTuning['wrap'] = definition => tapped(tapped(definition, spy('catalog')), spy('bodies'))
    const store = await factory.open({ fleet: {}, wrap })
    equal([asked.length, new Set(asked).size], [2, 1], 'each tier was asked, and they agree')
    const other = await another(factory, store)
    for (const length of tierLengths(factory)) {
      const { key } = await putReleased(store, bytesOf(length, 5))
      sameBytes(
        await present(await other.get(key), 'the entry').bytes(),
        bytesOf(length, 5),
        'the other instance reads'
      )
    }
    await other.close()
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const probe = row({
  name: 'the_consolidation_same_instance_probe_errors_closed',
  statement:
    'Large objects on another instance, or on one that would not say which it is, are refused, declared or not.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-8',
  needs: ['fleet', 'second', 'large-objects'],
  async run(factory) {
    const store = await factory.open()
    await putReleased(store, bytesOf(10))
    const elsewhere = { identity: async () => ({ system: '1', database: '1', timeline: 1 }) }
    const silent = { identity: () => Promise.reject(new Error('permission denied for function pg_control_system')) }
    for (const part of ['catalog', 'bodies'] as const) {
      for (const answer of [elsewhere, silent]) {
        for (const fleet of [{}, { sharedMedia: 'operator-declared' }] as const) {
          const tuning = { ...wrapping(onServer(part, () => answer)), fleet }
          await refuses(
            () => factory.second?.(store, tuning),
            brokenBy('same-instance'),
            `${part} that answers wrongly`
          )
        }
      }
    }
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const twoServers = row({
  name: 'large_objects_on_another_running_instance_are_refused_at_open',
  statement:
    'With the catalog on one server and the large objects on a second one, a fleet does not open, and neither is touched.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-8',
  needs: ['fleet', 'two-servers'],
  async run(factory) {
    for (const fleet of [{}, { sharedMedia: 'operator-declared' }] as const)
      await refuses(() => factory.apart?.({ fleet }), brokenBy('same-instance'), 'a second server')
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#joining
 */
const roundTrip = row({
  name: 'the_pg_lo_consolidation_round_trip_is_byte_exact_over_the_shared_instance',
  statement: 'Every interesting content that one instance puts, another reads whole and in ranges, byte for byte.',
  stamps: ['docs/spec/fleet.md#joining'],
  invariant: 'INV-1',
  needs: ['fleet', 'second', 'large-objects'],
  async run(factory) {
    const writer = await factory.open()
    const reader = await another(factory, writer)
    for (const { name, bytes } of contentMatrix(factory)) {
      const { key } = await putReleased(writer, bytes)
      const blob = present(await reader.get(key), name)
      sameBytes(await blob.bytes(), bytes, name)
      const start = Math.floor(bytes.length / 3)
      sameBytes(await blob.slice(start).bytes(), bytes.subarray(start), `${name}, in part`)
    }
    await reader.close()
    await writer.close()
    await factory.teardown()
  }
})

export const fleetJoiningRows = [constructs, guards, undeclared, consolidation, probe, twoServers, roundTrip]

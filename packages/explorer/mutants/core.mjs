// Mutants of core: the order of a sweep and of a delete, the counting of pins, the put path. Killed by the explorer.
const explorer = (form, test) => ({ folder: 'packages/explorer', spec: `tests/properties-${form}.spec.ts`, test })
const durable = test => explorer('durable', test)
const inline = test => explorer('inline', test)

const own = (spec, test) => ({ folder: 'packages/core', spec: `tests/${spec}.spec.ts`, test })

const core = 'packages/core/src'
const edit = (file, from, to) => ({ file: `${core}/${file}`, from, to })

export const CORE = [
  {
    name: 'a sweep reads its sources before it has the lease',
    breaks: 'sources are read after the lease, which opens the epoch (sweep.md)',
    edits: [
      edit(
        'sweep/sweep.ts',
        '  const lease = await pool.lease()\n',
        '  const early = await view.ask()\n  const lease = await pool.lease()\n'
      ),
      edit(
        'sweep/sweep.ts',
        'const live = await view.ask(lease.live && (digests => pool.catalog.loadLive(lease, digests)))',
        'const live = early'
      )
    ],
    killedBy: inline('inline, small: hand over, put a stream | sweep, sweep')
  },
  {
    name: 'a durable sweep executes what it staged itself',
    breaks: 'staged by one sweep, executed by a later one (sweep.md)',
    edits: [
      edit(
        'sweep/sweep.ts',
        '[maintain, executeDue, stageCandidates, drop]\n',
        '[maintain, stageCandidates, executeDue, drop]\n'
      )
    ],
    killedBy: durable('hand over | sweep, sweep, with a source that enumerates')
  },
  {
    name: 'a sweep removes what its sources call live',
    breaks: 'ENG-REMOVE-2',
    edits: [edit('sweep/execute.ts', 'live: live.has(key)', 'live: false')],
    killedBy: durable('durable, small: put and refer, forget | sweep, sweep')
  },
  {
    name: 'a sweep goes on after its lease was lost',
    breaks: 'G4',
    edits: [
      edit('sweep/run.ts', 'if (this.lease?.lost.aborted === true) throw', 'if (this.lease === undefined) throw')
    ],
    killedBy: own('sweep', 'a sweep that loses its lease')
  },
  {
    name: 'cancelled candidates are counted as deleted',
    breaks: 'G6',
    edits: [edit('sweep/execute.ts', 'report.cancelledByArbitration++', 'report.deleted += 2')],
    killedBy: durable('durable, small: put, delete the other | sweep, sweep')
  },
  {
    name: 'a delete asks the sources before it marks',
    breaks: 'the mark comes before the question (delete.ts)',
    edits: [
      edit(
        'delete.ts',
        '  const marked = await mark(pool, targets, outcomes)\n',
        '  const early = await askSources(parts.view, targets as readonly Marked[])\n  const marked = await mark(pool, targets, outcomes)\n'
      ),
      edit('delete.ts', '= await askSources(parts.view, marked)', '= early')
    ],
    killedBy: durable('hand over | delete')
  },
  {
    name: 'a delete drops the body before the transaction that removes',
    breaks: 'the order of remove, trash and drop',
    edits: [
      edit(
        'delete.ts',
        '  const removed = await remove(pool, marked, live)\n',
        `  for (const entry of await pool.catalog.find(marked.map(({ key }) => key))) {
    if (entry?.place.tier === 'large') await pool.bodies.drop([entry.place.locator])
  }
  const removed = await remove(pool, marked, live)\n`
      )
    ],
    killedBy: durable('durable, large: put and refer, forget | delete, delete')
  },
  {
    name: 'a repair removes a record wherever its bytes lie by now',
    breaks: 'repair names the place (`at`)',
    edits: [edit('verify.ts', '[{ key, at: place }]', '[{ key }]')],
    killedBy: durable('put that heals, without a pin | repair')
  },
  {
    name: 'a release names every generation to come',
    breaks: 'a release names the generation it took (pins.ts)',
    edits: [edit('pins.ts', 'this.#idOf(key, minted)', 'this.#idOf(key, minted + 1_000)')],
    killedBy: durable('one instance: put | put and keep || delete')
  },
  {
    name: 'a release does not wait for puts under way',
    breaks: 'a key is counted from before its transaction (held.ts)',
    edits: [edit('held.ts', 'this.pending === 0 && this.states.size === 0', 'this.states.size === 0')],
    killedBy: own('pins', 'a put under way keeps the row of one released meanwhile')
  },
  {
    name: 'a pin counts its time from the answer, not from before the transaction',
    breaks: '`held` turns false no later than the row expires (safety argument)',
    edits: [
      edit(
        'pins.ts',
        'if (held.renewed.monotonicMs <= begun.monotonicMs) held.renewed = begun\n    const state',
        'if (begun.monotonicMs > 0) held.renewed = instant()\n    const state'
      )
    ],
    killedBy: durable('hand over with a renewal, time passes | delete')
  },
  {
    name: 'an instance of a fleet lets expired pins live on',
    breaks: 'in a fleet what has expired stays expired (fleet.md)',
    edits: [edit('store.ts', 'revives: config.fleet === undefined', 'revives: config !== undefined')],
    killedBy: durable('fleet: pin and keep, renewal, time passes | sweep of what is staged')
  },
  {
    name: 'an instance of a fleet hands out a pin that has expired already',
    breaks: 'a put answered later than a TTL after it began looks at its row once more (fleet.md)',
    edits: [edit('pins.ts', 'if (lost.pins.length > 0) return false', 'if (lost.pins.length > 1) return false')],
    killedBy: durable('fleet: put and keep, time passes | sweep, sweep')
  },
  {
    name: 'a renewal moves the first page of rows alone',
    breaks: 'all pins and stages are renewed together (fleet.md)',
    edits: [
      edit('pins.ts', 'i < pins.length || i < stages.length; i', 'i === 0 && pins.length + stages.length > 0; i')
    ],
    killedBy: own('pins', 'moves every row and stage of the store')
  },
  {
    name: 'every put uses the same stage',
    breaks: 'the stage id is the unique part of a locator',
    edits: [edit('spill.ts', "randomBytes(16).toString('hex') as StageId", "'0'.repeat(32) as StageId")],
    killedBy: durable('durable, large: put and refer, forget | put and keep, delete the other')
  },
  {
    name: 'a put that was given up takes back a body that was published',
    breaks: 'a sealed body is left to its stage (spill.ts)',
    edits: [edit('spill.ts', 'if (this.#sealed === undefined) await this.#writer', 'await this.#writer')],
    killedBy: durable('deadline of a large put | delete')
  },
  {
    name: 'a put trusts an entry without a look at its bytes',
    breaks: 'an entry that is found is looked at before it is trusted (publish.ts)',
    edits: [
      edit('publish.ts', "if (published.outcome !== 'existed') return published", 'if (attempt >= 0) return published')
    ],
    killedBy: durable('put that heals, without a pin | repair')
  },
  {
    name: 'a trash row ends before its body is dropped',
    breaks: 'the trash row goes last (drop.ts)',
    edits: [
      edit(
        'drop.ts',
        '  const results = await pool.bodies.drop(page.map(({ what }) => what))\n',
        '  await pool.catalog.dropped(page.map(({ what }) => ({ what })))\n  const results = await pool.bodies.drop(page.map(({ what }) => what))\n'
      )
    ],
    killedBy: durable('durable, large: put and refer, forget | delete, delete')
  },
  {
    name: 'a half body is an orphan without a second look at the medium',
    breaks: 'a half body is looked for once more (orphans.ts)',
    edits: [edit('orphans.ts', 'stillHalf.has(stage))', 'stillHalf.size >= 0)')],
    killedBy: durable('durable form large put | maintain')
  },
  {
    name: 'maintenance never looks for orphans',
    breaks: 'ENG-TRASH-3, the scan',
    edits: [edit('maintain.ts', 'if (this.#isScanDue(options))', 'if (this.#isScanDue(options) && this.#runs < 0)')],
    killedBy: { ...durable('crash of a large put, time passes | maintain without a scan'), isLong: true }
  }
]

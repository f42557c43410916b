// Mutants of engine-mem, killed by the explorer, which runs on it, and of engine-sqlite, killed by that engine's own tests.
const inline = test => ({ folder: 'packages/explorer', spec: 'tests/properties-inline.spec.ts', test })
const memory = test => ({ folder: 'packages/engine-mem', spec: 'tests/catalog.spec.ts', test })
const sqlite = (spec, test) => ({
  folder: 'packages/engine-sqlite',
  spec: `tests/${spec}.spec.ts`,
  ...(test === undefined ? {} : { test })
})

const mem = (file, from, to) => ({ file: `packages/engine-mem/src/${file}`, from, to })
const sql = (file, from, to) => ({ file: `packages/engine-sqlite/src/catalog/${file}`, from, to })

export const ENGINES = [
  {
    name: 'mem: what is put or pinned during a sweep is not kept',
    breaks: 'ENG-LEASE-4',
    edits: [mem('medium.ts', '    this.held?.epoch?.add(key)\n', '')],
    killedBy: inline('inline, small: hand over, put a stream | sweep, sweep')
  },
  {
    name: 'mem: what was pinned when a sweep began is not kept',
    breaks: 'ENG-LEASE-4',
    edits: [mem('catalog/lease.ts', 'new Set(medium.pins.keys())', 'new Set()')],
    killedBy: inline('inline, small: hand over, put a stream | sweep, sweep')
  },
  {
    name: 'mem: puts and pins do not cancel the mark of a delete',
    breaks: 'ENG-PUBLISH-6',
    edits: [mem('medium.ts', 'mark.cancelled = true', 'mark.cancelled = false')],
    killedBy: inline('inline, small: put and refer, forget | delete, delete')
  },
  {
    name: 'mem: a put that finds the entry forgets to protect it',
    breaks: 'ENG-PUBLISH-6',
    edits: [
      mem(
        'catalog/publish.ts',
        "    session.protect(key, item.pin)\n    return { outcome: 'existed', entry: found }",
        "    return { outcome: 'existed', entry: found }"
      )
    ],
    killedBy: inline('inline, small: put and refer, forget | delete, delete')
  },
  {
    name: 'mem: a release ends the row of a newer put',
    breaks: 'ENG-RELEASE-1',
    edits: [mem('catalog/pins.ts', 'found !== undefined && found.generation <= pin.generation', 'found !== undefined')],
    killedBy: inline('one instance, inline: put | put and keep || delete')
  },
  {
    name: 'mem: two sweeps hold the lease',
    breaks: 'ENG-LEASE-1',
    edits: [
      mem(
        'catalog/lease.ts',
        'if (medium.held !== undefined) return undefined',
        'if (medium.rows < 0) return undefined'
      )
    ],
    killedBy: memory('a sweep')
  },
  {
    name: 'mem: what is in trash already is trashed anew',
    breaks: 'a trash row is kept as it was trashed first',
    edits: [mem('medium.ts', 'if (this.trash.has(what)) return', 'if (this.trash.has(what) && delayMs < 0) return')],
    killedBy: memory('keeps a row as it was trashed first')
  },
  {
    name: 'sqlite: a staging does not look at pins again',
    breaks: 'ENG-WINDOW-1, the second look',
    edits: [
      sql(
        'window.ts',
        '(SELECT 1 FROM gc_pins p WHERE p.key = e.key AND p.expires_at > ?)\n  ON CONFLICT',
        '(SELECT 1 WHERE ? < 0)\n  ON CONFLICT'
      )
    ],
    killedBy: sqlite('sweep', 'staging')
  },
  {
    name: 'sqlite: puts and pins do not cancel',
    breaks: 'ENG-PUBLISH-6, ENG-PIN-1',
    edits: [
      sql(
        'pins.ts',
        'UPDATE gc_window SET cancelled = 1 WHERE key = ?',
        'UPDATE gc_window SET cancelled = 0 WHERE key = ?'
      )
    ],
    killedBy: sqlite('sweep', 'removing candidates')
  },
  {
    name: 'sqlite: a release ends the row of a newer put',
    breaks: 'ENG-RELEASE-1',
    edits: [sql('pins.ts', 'owner = ? AND generation <= ?', 'owner = ? AND generation <> -?')],
    killedBy: sqlite('pins', 'a pin row')
  },
  {
    name: 'sqlite: a renewal that revives a pin does not cancel',
    breaks: 'ENG-RENEW-3',
    edits: [sql('pins.ts', '  at.run(CANCEL, digest)\n  return true', '  return true')],
    killedBy: sqlite('pins', 'renewal')
  },
  {
    name: 'sqlite: a publication does not look whether its stage has expired',
    breaks: 'ENG-PUBLISH-2',
    edits: [sql('stages.ts', 'return row !== undefined && row[0] > now', 'return row !== undefined && now > 0')],
    killedBy: sqlite('stages-and-trash', 'stages')
  },
  {
    name: 'sqlite: a removal goes by key, wherever the entry lies',
    breaks: 'ENG-REMOVE-2 (`at`)',
    edits: [sql('remove.ts', 'place === undefined || isSamePlace(found.entry.place, place)', 'place !== null')],
    killedBy: sqlite('sweep', 'a direct delete')
  },
  {
    name: 'sqlite: a removal takes what has no row',
    breaks: 'ENG-REMOVE-2',
    edits: [sql('remove.ts', 'if (row === undefined || row[0] === 1)', 'if (row?.[0] === 1)')],
    killedBy: sqlite('sweep', 'removing candidates')
  },
  {
    name: "sqlite: a delete ends a sweep's row",
    breaks: 'ENG-REMOVE-6',
    edits: [
      sql(
        'remove.ts',
        "'DELETE FROM gc_window WHERE key = ? AND mark = ?'",
        "'DELETE FROM gc_window WHERE key = ? AND ? IS NOT NULL'"
      )
    ],
    killedBy: sqlite('sweep', 'a direct delete')
  },
  {
    name: 'sqlite: a lease that was lost unnoticed still removes',
    breaks: 'ENG-REMOVE-1',
    edits: [
      sql(
        'lease.ts',
        'if (this.#lock.isInForce && inPool() === this.#count) return',
        'if (inPool() !== undefined) return'
      )
    ],
    killedBy: sqlite('lease')
  },
  {
    name: 'sqlite: a scan takes the body of a stage for an orphan',
    breaks: 'ENG-TRASH-3',
    edits: [sql('trash.ts', 'if (at.row(HAS_STAGE, stage) !== undefined || at.row', 'if (at.row')],
    killedBy: sqlite('stages-and-trash', 'bodies that a scan found')
  }
]

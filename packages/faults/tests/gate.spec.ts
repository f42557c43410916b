// The gate, closed by each thing that it is there for.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { beginRun, judgeRun, linesOf } from '../src/gate.js'
import { type Cell, type ContestedSurfaces, Ledger } from '../src/index.js'
import { requiredCells } from '../src/matrix/gate.js'

const surfaces: ContestedSurfaces = {
  engines: {
    mem: { medium: 'memory', parts: ['catalog'] },
    sqlite: { medium: 'files', parts: ['catalog'] },
    pglo: { medium: 'server', parts: ['bodies'] }
  },
  surfaces: {
    'catalog.find': { parts: ['catalog'], at: ['catalog.find'] },
    'bodies.drop': { parts: ['bodies'], at: ['bodies.drop'] }
  }
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'alkblobs-gate-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  beginRun(made, 'run-1')
  return made
}

/** Writes records as a test file does that struck these cells. */
function struck(at: string, cells: readonly Cell[], { run = 'run-1', source = 'tests' } = {}): void {
  const ledger = new Ledger()
  for (const cell of cells) {
    const ticket = ledger.arm('a fault')
    ticket.fire([cell])
    ticket.finish()
  }
  ledger.write({ folder: at, run, source })
}

const all = requiredCells(surfaces)

describe('the squares', () => {
  it('follow from the media', () => {
    expect(all).toEqual([
      { surface: 'catalog.find', engine: 'mem', layer: 'injector' },
      { surface: 'catalog.find', engine: 'sqlite', layer: 'injector' },
      { surface: 'catalog.find', engine: 'sqlite', layer: 'L3' },
      { surface: 'bodies.drop', engine: 'pglo', layer: 'injector' },
      { surface: 'bodies.drop', engine: 'pglo', layer: 'L1', leg: 'graceful' },
      { surface: 'bodies.drop', engine: 'pglo', layer: 'L2', leg: 'graceful' },
      { surface: 'bodies.drop', engine: 'pglo', layer: 'L2', leg: 'torn' },
      { surface: 'bodies.drop', engine: 'pglo', layer: 'L3' }
    ])
  })
})

describe('the gate', () => {
  it('is open where every square was struck, and writes its report', () => {
    const at = folder()
    struck(at, all)
    struck(at, all.slice(0, 1), { source: 'more tests' })
    const { failures, report } = judgeRun(at, { surfaces })
    expect(failures).toEqual([])
    expect(report).toMatchObject({ armed: 9, fired: 9, executed: 9, missing: [] })
    expect(report.surfaces.find(({ engine }) => engine === 'mem')).toMatchObject({ executed: 2, fired: 2 })
    expect(JSON.parse(readFileSync(join(at, 'report.json'), 'utf8'))).toEqual(report)
    // Its own report is no record.
    expect(judgeRun(at, { surfaces }).failures).toEqual([])
  })

  it('is closed by a square that was not struck', () => {
    const at = folder()
    struck(at, all.slice(1))
    const { failures, report } = judgeRun(at, { surfaces })
    expect(failures).toEqual(['no fault struck catalog.find of mem at injector'])
    expect(report.missing).toEqual([all[0]])
  })

  it('is closed where nothing was executed', () => {
    expect(judgeRun(folder(), { surfaces }).failures).toContain('no fault was executed')
  })

  it('is closed by an armed fault that did not fire, and by one that was forgotten', () => {
    const at = folder()
    struck(at, all)
    const ledger = new Ledger()
    const unfired = ledger.arm('the first')
    expect(() => unfired.finish()).toThrow()
    ledger.arm('the second')
    expect(() => ledger.assertFinished()).toThrow()
    ledger.write({ folder: at, run: 'run-1', source: 'bad tests' })
    expect(judgeRun(at, { surfaces }).failures).toEqual([
      'an armed fault did not fire: the first',
      'an armed fault did not fire: the second (forgotten)'
    ])
  })

  it('is closed by a record of another run, whatever it says', () => {
    const at = folder()
    struck(at, all, { run: 'run-0' })
    expect(judgeRun(at, { surfaces }).failures).toContain('tests.json is of another run')
    expect(judgeRun(at, { surfaces }).report.fired).toBe(0)
  })

  it.each([
    ['half a record', 'tests.json', '{"run":"run-1","records":[{"wh'],
    ['a record that is none', 'tests.json', '{"run":"run-1"}'],
    ['a file that was never finished', 'tests.json.part', '']
  ])('is closed by %s', (_, name, text) => {
    const at = folder()
    struck(at, all, { source: 'others' })
    writeFileSync(join(at, name), text)
    expect(judgeRun(at, { surfaces }).failures).toEqual([`${name} cannot be read: its tests ended in the middle`])
  })

  it('is closed where the run left no stamp', () => {
    const at = folder()
    struck(at, all)
    rmSync(join(at, 'run.stamp'))
    expect(judgeRun(at, { surfaces }).failures).toContain(
      'the run left no stamp: what the records belong to cannot be told'
    )
  })

  it('names what it could not judge without a server, and judges the rest', () => {
    const at = folder()
    struck(at, all.slice(0, 2))
    const judgement = judgeRun(at, { surfaces, noServer: 'nobody answers' })
    expect(judgement.failures).toEqual(['no fault struck catalog.find of sqlite at L3'])
    expect(linesOf(judgement, 'nobody answers')).toContain('not judged: what needs a server (nobody answers)')
  })

  it('fails as a command, and shows the matrix', () => {
    const at = folder()
    const command = fileURLToPath(new URL('../dist/gate.js', import.meta.url))
    const failed = () => execFileSync(process.execPath, [command, '--folder', at], { encoding: 'utf8', stdio: 'pipe' })
    expect(failed).toThrow()
    const error = (() => {
      try {
        return failed()
      } catch (thrown) {
        return (thrown as { stdout: string }).stdout
      }
    })()
    expect(error).toContain('FAIL no fault was executed')
    expect(error).toMatch(/catalog\.publish +!!/)
  })
})

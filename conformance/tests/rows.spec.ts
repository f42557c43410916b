/** What every row must have, whatever it says. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { INVARIANTS, rows, TRAITS } from '../src/index.js'
import { row } from '../src/row.js'

const sources = new URL('../src/', import.meta.url)
const textsBelow = (folder: URL): [string, string][] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .map(file => [file, readFileSync(new URL(file, folder), 'utf8')])

describe('the rows', () => {
  test('have names of their own', () => {
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
  })

  test('each trace to an invariant, have a stamp and a statement', () => {
    for (const { name, invariant, stamps, statement } of rows) {
      expect(INVARIANTS, name).toHaveProperty(invariant)
      expect(stamps.length, name).toBeGreaterThan(0)
      expect(statement, name).toMatch(/^\S.{20,}\.$/)
    }
  })

  test('leave no invariant without a row', () => {
    const held = new Set(rows.map(({ invariant }) => invariant))
    expect(Object.keys(INVARIANTS).filter(id => !held.has(id as keyof typeof INVARIANTS))).toEqual([])
  })

  test('need only traits that there are, and never contradict themselves', () => {
    for (const { name, needs } of rows) {
      expect(
        needs.filter(trait => !TRAITS.includes(trait)),
        name
      ).toEqual([])
      expect(needs.filter(trait => ['mem-only', 'kv-only', 'dual-tier'].includes(trait)).length, name).toBeLessThan(2)
      expect(needs.filter(trait => ['inline', 'durable'].includes(trait)).length, name).toBeLessThan(2)
    }
  })

  test('import no test runner and never look at the name of a factory', () => {
    for (const [file, text] of textsBelow(sources)) {
      if (file !== 'vitest.ts') expect(text, file).not.toMatch(/from '(vitest|node:test|@?jest)/)
      if (file.startsWith('rows/')) expect(text, file).not.toMatch(/factory\.name|engines\(/)
    }
  })

  test('are refused without a stamp or with an unspeakable name', () => {
    const draft = {
      name: 'a_property',
      statement: 'It holds.',
      stamps: ['docs/x.md#y'],
      invariant: 'INV-1',
      run: async () => {}
    } as const
    expect(() => row({ ...draft, stamps: [] })).toThrow(TypeError)
    expect(() => row({ ...draft, name: 'A property' })).toThrow(TypeError)
    expect(row(draft)).toMatchObject({ needs: [], cases: [] })
  })
})

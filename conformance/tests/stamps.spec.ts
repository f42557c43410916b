/** Where a row's property is pinned must be found there: a stamp cannot outlive its heading. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { INVARIANTS, rows } from '../src/index.js'

const workspace = new URL('../../', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, workspace), 'utf8')

/** The anchor that GitHub makes of a heading. */
const slugOf = (heading: string) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

/** Every anchor of a page. A fenced block is no place for headings. */
function anchorsOf(file: string): ReadonlySet<string> {
  const prose = read(file).replace(/^(```|~~~)[\s\S]*?^\1/gm, '')
  return new Set([...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => slugOf(heading)))
}

function resolves(stamp: string): boolean {
  const [file = '', anchor = ''] = stamp.split('#')
  try {
    return anchorsOf(file).has(anchor)
  } catch {
    // A page that is not there has no headings.
    return false
  }
}

describe('the stamps of the rows', () => {
  test('each resolve to a heading in docs/', () => {
    const broken = rows.flatMap(({ name, stamps }) =>
      stamps.filter(stamp => !resolves(stamp)).map(stamp => `${name}: ${stamp}`)
    )
    expect(broken).toEqual([])
  })

  test('stand in the doc comment of the row as they stand in its data', () => {
    const folder = new URL('conformance/src/rows/', workspace)
    let seen = 0
    for (const file of readdirSync(fileURLToPath(folder)).filter(name => name !== 'index.ts')) {
      const text = readFileSync(new URL(file, folder), 'utf8')
      const declared = [
        ...text.matchAll(
          /\/\*\*((?:(?!\*\/)[\s\S])*?Contract stamp:(?:(?!\*\/)[\s\S])*)\*\/\nconst (\w+)[\s\S]*?stamps: \[([^\]]*)\]/g
        )
      ]
      for (const [, comment = '', name, data = ''] of declared) {
        const cited = [...comment.matchAll(/Contract stamp: (\S+)/g)].map(([, stamp]) => stamp)
        expect(cited, `${file}: ${name}`).toEqual([...data.matchAll(/'([^']+)'/g)].map(([, stamp]) => stamp))
      }
      expect(declared.length, `${file}: every row has its stamps in its comment`).toBe(
        text.match(/\bstamps: \[/g)?.length
      )
      seen += declared.length
    }
    expect(seen).toBeGreaterThan(50)
  })

  test('the invariant table of the page is the one of the suite', () => {
    const anchors = anchorsOf('docs/spec/conformance.md')
    expect(Object.keys(INVARIANTS).filter(id => !anchors.has(slugOf(id)))).toEqual([])
  })

  test('a stamp to a heading that is not there is noticed', () => {
    expect(resolves('docs/spec/store-api.md#no-such-heading')).toBe(false)
    expect(resolves('docs/spec/no-such-page.md#opening')).toBe(false)
    expect(resolves('docs/spec/store-api.md#opening')).toBe(true)
  })
})

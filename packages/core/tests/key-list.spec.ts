import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { formatKey } from '../src/key.js'
import { KeyList } from '../src/sweep/key-list.js'

const keyOf = (i: number) => formatKey('sha256', createHash('sha256').update(`${i}`).digest())

it('a list of keys gives them in pages, in the order they came, over every chunk', () => {
  const keys = Array.from({ length: 70_500 }, (_, n) => keyOf(n))
  const list = new KeyList('sha256')
  for (const key of keys) list.add(key)
  const pages = [...list.pages(1_000)]
  expect(pages).toHaveLength(71)
  expect(pages.at(-1)).toHaveLength(500)
  // One text each, because what differs among so many would take minutes to show.
  expect(pages.flat().join() === keys.join()).toBe(true)
  expect([...new KeyList('sha256').pages(1_000)]).toEqual([])
})

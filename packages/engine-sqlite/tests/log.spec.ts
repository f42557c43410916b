// How long the log may get: a small pool needs no disk several times its size, a large one writes back less often.
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { call, inline, openPool } from './fixture.js'

const MIB = 1024 * 1024

test('the log grows to 4 MiB and a commit, and to 16 once the file is that large', async () => {
  const { catalog, file } = await openPool({ durability: 'os' })
  const lengthOf = (path: string) => statSync(path).size / MIB
  let isLarge = false
  let longest = 0
  for (let n = 0; n < 60; n++) {
    await catalog.publish([inline(n, randomBytes(MIB))], call())
    // The commit that finds the file large is the first that may go on longer.
    if (!isLarge) expect(lengthOf(`${file}-wal`)).toBeLessThan(6)
    else longest = Math.max(longest, lengthOf(`${file}-wal`))
    isLarge = lengthOf(file) >= 16
  }
  expect(longest).toBeGreaterThan(15)
  expect(longest).toBeLessThan(18)
})

/** Every folder a factory makes is gone after its teardown. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { expect, test } from 'vitest'
import { factoryOf } from '../src/index.js'

test('a teardown removes exactly the folders its factory made', async () => {
  const roots: string[] = []
  const factory = factoryOf({
    name: 'watched',
    traits: ['dual-tier', 'inline'],
    threshold: 10,
    media({ folder }) {
      roots.push(folder)
      return { kv: mem({ medium: createMedium() }), large: local({ root: `${folder}/large` }), oracle: [] }
    }
  })
  for (let time = 0; time < 3; time += 1) await (await factory.open()).put('longer than the threshold')
  expect(roots.map(existsSync)).toEqual([true, true, true])
  await factory.teardown()
  expect(roots.map(existsSync)).toEqual([false, false, false])
  expect(roots.map(root => existsSync(dirname(root)))).toEqual([true, true, true])
})

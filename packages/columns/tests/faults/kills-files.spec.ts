// Writers and sweepers on sqlite + local, killed at every surface.
import '@alkblobs/faults/vitest'
import { describe, expect, it } from 'vitest'
import { killEverywhere, LIMIT_MS } from './kills.js'

describe('a process', () => {
  it('that is killed at any call loses nothing acknowledged and leaves nothing', { timeout: LIMIT_MS }, async () => {
    expect(await killEverywhere('sqlite + local', ['sqlite', 'local'])).toBeGreaterThan(20)
  })
})

// Writers and sweepers on postgres + pglo, killed at every surface.
import '@alkblobs/faults/vitest'
import { noServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { killEverywhere, LIMIT_MS } from './kills.js'

const reason = noServer()

describe.skipIf(reason !== undefined)(`a process${reason === undefined ? '' : ` (${reason})`}`, () => {
  it('that is killed at any call loses nothing acknowledged and leaves nothing', { timeout: LIMIT_MS }, async () => {
    expect(await killEverywhere('postgres + pglo', ['postgres'])).toBeGreaterThan(20)
  })
})

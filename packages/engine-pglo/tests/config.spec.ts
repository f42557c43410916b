// What may be said about the database, and what opening does to it.
import { InvalidArgumentError } from '@alkblobs/core/engine'
import { describe, expect, it } from 'vitest'
import { pglo } from '../src/index.js'

const url = 'postgres://nobody@127.0.0.1:1/nothing'

describe('options', () => {
  it.each(['', 'a\0b', 'pg_mine', 'information_schema', 'ä'.repeat(32), 7])('refuses the schema %j', schema => {
    expect(() => pglo({ url, schema: schema as string })).toThrow(InvalidArgumentError)
  })
  it.each([1, 1.5, Number.NaN, 1_001])('refuses poolMax %s', poolMax => {
    expect(() => pglo({ url, poolMax })).toThrow(InvalidArgumentError)
  })
  it.each([99, 0.5, -1, 86_400_001])('refuses stageIdleTimeoutMs %s', stageIdleTimeoutMs => {
    expect(() => pglo({ url, stageIdleTimeoutMs })).toThrow(InvalidArgumentError)
  })
  it('must be an object', () => {
    expect(() => pglo(undefined as never)).toThrow(InvalidArgumentError)
  })
  it('opens nothing before it is told to, and names the failure then', async () => {
    const definition = pglo({ url })
    const context = { algorithm: 'sha256', lockTimeoutMs: 500, connectTimeoutMs: 500 } as const
    await expect(definition.open(context)).rejects.toMatchObject({ name: 'EngineFault', code: 'transient' })
  })
})

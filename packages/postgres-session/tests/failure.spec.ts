import { expect, test } from 'vitest'
import { ServerError, withoutSecrets } from '../src/index.js'

test('an error of which the server left things out is still one of the server', () => {
  const bare = Object.assign(new Error('no code'), { name: 'PostgresError', query: 'SELECT 1' })
  const told = withoutSecrets(bare)
  expect(told).toBeInstanceOf(ServerError)
  expect(told).toMatchObject({ code: '', severity: 'ERROR', message: 'no code ()' })
  expect(told).not.toHaveProperty('query')
})

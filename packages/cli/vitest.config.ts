import { suite } from '../../vitest.shared.js'

export default suite('packages/cli', { postgres: 'tests/postgres' })

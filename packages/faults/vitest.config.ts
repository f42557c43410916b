import { suite } from '../../vitest.shared.js'

export default suite('packages/faults', { postgres: 'tests/postgres' })

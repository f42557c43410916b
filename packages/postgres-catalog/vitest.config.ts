import { suite } from '../../vitest.shared.js'

export default suite('packages/postgres-catalog', { postgres: true })

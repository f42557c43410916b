import { suite } from '../../vitest.shared.js'

export default suite('packages/engine-pglo', { postgres: true })

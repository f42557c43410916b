import { suite } from '../../vitest.shared.js'

export default suite('packages/explorer')

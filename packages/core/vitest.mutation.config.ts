import type { ViteUserConfig } from 'vitest/config'
import { suite } from '../../vitest.shared.js'

// What `npm run mutation` judges by. A mutant that makes a test wait for ever is noticed as soon as any test would have been over.
const whole = suite('packages/core')

const config: ViteUserConfig = { ...whole, test: { ...whole.test, testTimeout: 10_000 } }

export default config

import { mergeConfig } from 'vitest/config'
import { suite } from '../../vitest.shared.js'

export default mergeConfig(suite('packages/columns'), { test: { globalSetup: ['tests/report-setup.ts'] } })

import { mergeConfig } from 'vitest/config'
import { suite } from '../../vitest.shared.js'

export default mergeConfig(suite('packages/columns'), {
  // Half of a run is waiting for disks and processes: a second file beside the first costs nothing on two cores.
  test: { globalSetup: ['tests/report-setup.ts'], maxWorkers: 2 }
})

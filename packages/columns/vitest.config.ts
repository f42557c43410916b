import { mergeConfig } from 'vitest/config'
import { suite } from '../../vitest.shared.js'

export default mergeConfig(suite('packages/columns', { postgres: 'tests/postgres' }), {
  // Half of a run is waiting for disks and processes: a second file beside the first costs nothing on two cores. Columns on a
  // server wait for it most of the time.
  test: { globalSetup: ['tests/report-setup.ts'], maxWorkers: process.env.ALKBLOBS_TEST_PART === 'postgres' ? 3 : 2 }
})

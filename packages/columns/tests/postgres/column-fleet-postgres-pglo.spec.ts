import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { fleetPostgresPglo } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(fleetPostgresPglo(), rows, { folder: postgresFolder, unavailable: noServer() })

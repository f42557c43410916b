import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { fleetKvOnlyPostgres } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(fleetKvOnlyPostgres(), rows, { folder: postgresFolder, unavailable: noServer() })

import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { fleetPostgresLocal } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(fleetPostgresLocal(), rows, { folder: postgresFolder, unavailable: noServer() })

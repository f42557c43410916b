import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { sqlitePglo } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(sqlitePglo(), rows, { folder: postgresFolder, unavailable: noServer() })

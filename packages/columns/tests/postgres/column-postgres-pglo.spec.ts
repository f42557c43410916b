import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { postgresPglo } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(postgresPglo(), rows, { folder: postgresFolder, unavailable: noServer() })

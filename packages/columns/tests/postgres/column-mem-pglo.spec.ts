import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { memPglo } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(memPglo(), rows, { folder: postgresFolder, unavailable: noServer() })

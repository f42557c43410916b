import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { kvOnlyPostgres } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(kvOnlyPostgres(), rows, { folder: postgresFolder, unavailable: noServer() })

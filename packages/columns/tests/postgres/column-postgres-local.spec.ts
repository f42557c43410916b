import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { noServer } from '@alkblobs/testkit'
import { postgresLocal } from '../../src/index.js'
import { postgresFolder } from '../folders.js'

describeColumn(postgresLocal(), rows, { folder: postgresFolder, unavailable: noServer() })

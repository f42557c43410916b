import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { kvOnlySqlite } from '../src/index.js'
import { columnFolder } from './folders.js'

describeColumn(kvOnlySqlite(), rows, { folder: columnFolder })

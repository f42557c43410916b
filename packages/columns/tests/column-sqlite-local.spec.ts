import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { sqliteLocal } from '../src/index.js'
import { columnFolder } from './folders.js'

describeColumn(sqliteLocal(), rows, { folder: columnFolder })

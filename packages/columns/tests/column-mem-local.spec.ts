import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { memLocal } from '../src/index.js'
import { columnFolder } from './folders.js'

describeColumn(memLocal(), rows, { folder: columnFolder })

import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { memOnly } from '../src/index.js'
import { columnFolder } from './folders.js'

describeColumn(memOnly(), rows, { folder: columnFolder })

import { rows } from '@alkblobs/conformance'
import { describeColumn } from '@alkblobs/conformance/vitest'
import { kvOnlyMem } from '../src/index.js'
import { columnFolder } from './folders.js'

describeColumn(kvOnlyMem(), rows, { folder: columnFolder })

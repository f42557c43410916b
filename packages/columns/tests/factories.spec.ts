import { embeddedColumns } from '../src/index.js'
import { describeFactory } from './factory-promises.js'

for (const make of embeddedColumns) describeFactory(make)

import { library } from '../../tsup.shared.js'

export default library({ index: 'src/index.ts', vitest: 'src/vitest.ts', gate: 'src/gate.ts' })

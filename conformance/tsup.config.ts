import { library } from '../tsup.shared.js'

export default library({
  index: 'src/index.ts',
  vitest: 'src/vitest.ts',
  'broken/index': 'src/broken/index.ts',
  'model/index': 'src/model/index.ts'
})

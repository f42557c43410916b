import { program } from '../../tsup.shared.js'

export default program({ main: 'src/main.ts' })

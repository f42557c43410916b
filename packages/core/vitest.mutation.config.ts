import { suite } from '../../vitest.shared.js'

// What `npm run mutation` judges by: the specs of the sweep and of the put path. A mutant that makes a test wait for ever is noticed as soon
// as any of these would have been over, however busy the machine is.
const specs = [
  'sweep*',
  'liveness',
  'key-set',
  'publish',
  'put-path',
  'pins',
  'receipt',
  'fleet',
  'pair',
  'copies',
  'producers'
]
const whole = suite('packages/core')

export default {
  ...whole,
  test: { ...whole.test, include: specs.map(name => `tests/${name}.spec.ts`), testTimeout: 10_000 }
}

/** The configurations that are searched to their end. Those marked long run with ALKBLOBS_LONG=1. */
import { EVENTS } from './events.js'
import { FLEETS } from './fleets.js'
import type { Listed } from './listed.js'
import { OTHERS, SHARED, THREE } from './others.js'
import { pairs } from './pairs.js'

export type { Listed } from './listed.js'

export const CONFIGURATIONS: readonly Listed[] = [...pairs(), ...EVENTS, ...FLEETS, ...SHARED, ...OTHERS, ...THREE]

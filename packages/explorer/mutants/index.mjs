// The kept list of mutants for `npm run mutants`: each breaks one rule of the protocol by a small edit of the sources, and names the
// tests that must notice. `killedBy` is a spec of a package and, where given, a part of the titles that are run.
import { CORE } from './core.mjs'
import { ENGINES } from './engines.mjs'

/**
 * @typedef {object} Mutant
 * @property {string} name what the code now does
 * @property {string} breaks the rule
 * @property {readonly { file: string, from: string, to: string }[]} edits `from` stands in the file exactly once
 * @property {{ folder: string, spec: string, test?: string, isLong?: boolean }} killedBy
 */

/** @type {readonly Mutant[]} */
export const MUTANTS = [...CORE, ...ENGINES]

/** A process that loads better-sqlite3 and nothing else. Answers the milliseconds since the process began. */
import Database from 'better-sqlite3'
import { answer } from '../child.mjs'

answer({ figure: performance.now(), loaded: typeof Database })

#!/usr/bin/env node
/** The bin: one run of the command with the process's own streams. */
import { run } from './program.js'
import { processSurroundings } from './surroundings.js'

process.exitCode = await run(process.argv.slice(2), processSurroundings())
// A producer that was cancelled may still hold stdin open, and an open stdin would keep the process waiting for it.
process.stdin.destroy()

/** The invariant table of `docs/spec/conformance.md`. Every row traces to one of these; a new property needs an entry first. */
export const INVARIANTS = {
  'INV-1': 'put then get is byte-identical under the derivation: every engine, tier, put path, chunking',
  'INV-2': 'the same content twice, by the same or different paths, is one entry',
  'INV-3': 'a put that fails midway leaves zero stages and no entry; success leaves exactly one entry',
  'INV-4': 'sweeps are safe: exact counts under the full protection set; an aborted sweep deletes nothing',
  'INV-5': 'the listing is complete and well-formed, shown through sweep outcomes',
  'INV-6': 'stat gives length and algorithm without reading content',
  'INV-7': 'every engine passes the same rows as mem',
  'INV-8': 'bad input never half-succeeds',
  'INV-9': 'stored bytes are verified: corruption is reported, never returned',
  'INV-10': 'cancellation and close release everything',
  'INV-11': 'a resolved put or pin is never followed by a missing entry, whatever runs beside it',
  'INV-12': 'nothing leaks'
} as const

/** The name of an invariant: `INV-4`. */
export type InvariantId = keyof typeof INVARIANTS

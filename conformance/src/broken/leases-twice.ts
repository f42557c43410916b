/** Fault: a second sweeper is let in. */
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** The lease is no lock: whoever asks gets one. */
export const leasesTwice: PlantedFault = {
  name: 'leases twice',
  statement: 'lease answers a lease though another sweeper holds one (ENG-LEASE-1)',
  needs: ['inline', 'mem-only'],
  caughtBy: ['sweep_is_single_flight_the_contended_second_aborts_as_data'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        lease: async call =>
          (await inner.lease(call)) ?? { lost: new AbortController().signal, release: () => Promise.resolve() }
      })
    })
}

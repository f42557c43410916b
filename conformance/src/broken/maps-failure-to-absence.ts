/** Fault: a medium that cannot be read is taken for one that holds nothing. */
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

const isInputOutput = (error: unknown) => (error as { code?: unknown } | undefined)?.code === 'EIO'

/** Answers `otherwise` where the medium failed. */
async function unlessFailed<T>(attempt: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await attempt
  } catch (error) {
    if (isInputOutput(error)) return otherwise
    throw error
  }
}

/** The most common mistake of storage engines: every error is "not found". */
export const mapsFailureToAbsence: PlantedFault = {
  name: 'maps EIO to absent',
  statement: 'an input/output error is answered as an absent entry or an empty body (ENG-2)',
  needs: [],
  caughtBy: ['a_failure_of_the_medium_is_an_error_never_an_absence'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        find: (keys, call) =>
          unlessFailed(
            inner.find(keys, call),
            keys.map(() => undefined)
          ),
        read: (key, call) => unlessFailed(inner.read(key, call), undefined),
        list: (after, limit, call) => unlessFailed(inner.list(after, limit, call), [])
      }),
      bodies: inner => ({
        length: (locator, call) => unlessFailed(inner.length(locator, call), undefined)
      })
    })
}

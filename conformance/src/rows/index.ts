/** The rows, by family. What is not in this list does not exist. */
import type { Row } from '../row.js'
import { arbitrationRows } from './arbitration.js'
import { callerRows } from './caller.js'
import { cancellingRows } from './cancelling.js'
import { closingRows } from './closing.js'
import { copyRows } from './copies.js'
import { crowdRows } from './crowds.js'
import { dedupRows } from './dedup.js'
import { fleetExpiryRows } from './fleet-expiry.js'
import { fleetJoiningRows } from './fleet-joining.js'
import { fleetPinRows } from './fleet-pins.js'
import { fleetSweepRows } from './fleet-sweeps.js'
import { folderRows } from './folders.js'
import { handoverRows } from './handover.js'
import { hygieneRows } from './hygiene.js'
import { joiningRows } from './joining.js'
import { largeObjectRows } from './large-objects.js'
import { lockedRows } from './locked.js'
import { mediaRows } from './media.js'
import { modeRows } from './modes.js'
import { openTransactionRows } from './open-transaction.js'
import { openingBesideRows } from './opening-beside.js'
import { pinRows } from './pins.js'
import { placementRows } from './placement.js'
import { readingRows } from './reading.js'
import { readingBesideRows } from './reading-beside.js'
import { repairingRows } from './repairing.js'
import { residueRows } from './residue.js'
import { roundTripRows } from './round-trip.js'
import { sweepAbortRows } from './sweep-aborts.js'
import { durableSweepRows } from './sweep-durable.js'
import { inlineSweepRows } from './sweep-inline.js'
import { tableRows } from './tables.js'
import { unsteadyRows } from './unsteady.js'
import { verificationRows } from './verification.js'
import { virginRows } from './virgin.js'

/** Every row of the suite, each name once. A factory runs those whose `needs` it declares. */
export const rows: readonly Row[] = [
  ...roundTripRows,
  ...dedupRows,
  ...callerRows,
  ...unsteadyRows,
  ...hygieneRows,
  ...cancellingRows,
  ...crowdRows,
  ...modeRows,
  ...inlineSweepRows,
  ...sweepAbortRows,
  ...durableSweepRows,
  ...arbitrationRows,
  ...lockedRows,
  ...openTransactionRows,
  ...joiningRows,
  ...tableRows,
  ...handoverRows,
  ...pinRows,
  ...readingRows,
  ...largeObjectRows,
  ...readingBesideRows,
  ...verificationRows,
  ...repairingRows,
  ...placementRows,
  ...residueRows,
  ...virginRows,
  ...mediaRows,
  ...openingBesideRows,
  ...folderRows,
  ...fleetJoiningRows,
  ...fleetPinRows,
  ...fleetExpiryRows,
  ...fleetSweepRows,
  ...copyRows,
  ...closingRows
]

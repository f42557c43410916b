/** The fault kit: faults for storage engines of alkblobs, each of which must be seen to strike. */
export { during, operationNow } from './during.js'
export {
  away,
  type Driver,
  fullDisk,
  isInjected,
  memoryError,
  outOfDescriptors,
  serverError,
  sqliteError,
  systemError
} from './errors.js'
export { type EveryFailureOptions, everyFailure, type Failure } from './every-failure.js'
export { faulty, partsOf } from './faulty.js'
export {
  type Armed,
  type Cell,
  type FaultRecord,
  ForgottenFault,
  type Layer,
  Ledger,
  type LedgerFile,
  type Leg,
  ledger,
  Ticket,
  UnfiredFault
} from './ledger.js'
export { type ArmedFault, type Fault, FaultPlan, type How, type Strike } from './plan.js'
export { FAULT_POINTS, type FaultPoint } from './points.js'
export { assertMinted, NotMinted, type PgAdmin, pgAdmin } from './postgres/admin.js'
export { ApplicationFailure, REFERENCES, type Together, together } from './postgres/application.js'
export {
  type ArmedPgFault,
  type PgFault,
  PgFaultArmer,
  type PgFaultReport,
  STATEMENT_CLASSES,
  type StatementClass
} from './postgres/armer.js'
export { type Barrier, type BarrierCause, BarrierExpired, rowBarrier, statementsBarrier } from './postgres/barrier.js'
export { NotTerminated, sessionsOf, terminateBackend } from './postgres/terminate.js'
export { Markers, type Said } from './process/markers.js'
export { type SmallDisk, smallDisk } from './process/small-disk.js'
export { type End, Victim, type VictimOptions } from './process/victim.js'
export { ProxyServer } from './proxy/server.js'
export {
  type ContestedSurfaces,
  contestedSurfaces,
  type EngineRow,
  type Medium,
  type Surface,
  surfacesAt
} from './surfaces.js'
export { FaultyProxy, type NewToxic, TransportApiError, TransportFaults } from './transport/client.js'
export { type FoundProxy, findProxy, NoProxy, type ProxyKind } from './transport/find.js'
export type {
  ProxyState,
  Stream,
  Toxic,
  ToxicAttributes,
  ToxicCounters,
  ToxicType,
  Trigger
} from './transport/toxics.js'
export { type Company, contractSteps } from './workout/contract.js'
export { assertWhole, attempt, everyFailureOf, Hang, perform, prepare, retry } from './workout/run.js'
export { type Step, steps } from './workout/steps.js'
export { cover, isAt, surfacesOf, type Target, trace } from './workout/trace.js'
export { type Subject, World } from './workout/world.js'

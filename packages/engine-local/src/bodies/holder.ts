/** Who holds a lock, and whether that process is provably dead. Doubt is an answer: no. */
import { readlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Files } from '../files.js'

/** A process, named so that a later one with the same number is told apart. Fields are absent where the system has none. */
export interface Holder {
  readonly pid: number
  /** Clock ticks from boot to the start of the process. */
  readonly startTime?: string | undefined
  readonly bootId?: string | undefined
  readonly pidNamespace?: string | undefined
  /** Of this installation of the system; two containers may share a host name. */
  readonly machineId?: string | undefined
  readonly host: string
}

/** This very process. */
export async function ourselves(files: Files): Promise<Holder> {
  return {
    pid: process.pid,
    startTime: (await processStatus(process.pid, files))?.startTime,
    bootId: await firstLine('/proc/sys/kernel/random/boot_id', files),
    pidNamespace: await readlink('/proc/self/ns/pid').catch(absent),
    machineId: await firstLine('/etc/machine-id', files),
    host: hostname()
  }
}

/** Whether the holder has ended for certain. */
export async function isDead(holder: Holder, files: Files): Promise<boolean> {
  const here = await ourselves(files)
  if (!Number.isSafeInteger(holder.pid) || holder.pid <= 0 || holder.host !== here.host) return false
  if (holder.bootId !== here.bootId) {
    // Another boot, of this machine or of one that is called the same? Only the machine id tells.
    return holder.bootId !== undefined && holder.machineId !== undefined && holder.machineId === here.machineId
  }
  if (holder.pidNamespace !== here.pidNamespace) return false
  try {
    // Signal 0 asks without touching.
    process.kill(holder.pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  const running = await processStatus(holder.pid, files)
  if (running === undefined || holder.startTime === undefined) return false
  return running.ended || running.startTime !== holder.startTime
}

interface ProcessStatus {
  readonly startTime: string | undefined
  /** Killed, and kept in the table only until its parent asks for it. */
  readonly ended: boolean
}

async function processStatus(pid: number, files: Files): Promise<ProcessStatus | undefined> {
  const line = await firstLine(`/proc/${pid}/stat`, files)
  // The second field is the program's name in parentheses, which may hold spaces and parentheses itself.
  const fields = line?.slice(line.lastIndexOf(')') + 2).split(' ')
  if (fields === undefined) return undefined
  const isZombie = fields[0] === 'Z' || fields[0] === 'X'
  // Other threads of a killed process may still be at a write: it has ended when the last of them has.
  const threads = isZombie ? await files.readdir(`/proc/${pid}/task`).catch(absent) : undefined
  // The whole line's field 22; `fields` starts with the third.
  return { startTime: fields[19], ended: isZombie && (threads === undefined || threads.length <= 1) }
}

async function firstLine(path: string, files: Files): Promise<string | undefined> {
  const handle = await files.open(path, 'r').catch(absent)
  try {
    return (await handle?.readFile('utf8').catch(absent))?.split('\n')[0]
  } finally {
    await handle?.close()
  }
}

/** Without the proof there is doubt, and every doubt above counts as alive. */
function absent(): undefined {
  return undefined
}

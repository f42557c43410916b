/** Names the failures of a file system. */
import { EngineFault, type ErrorCode } from '@alkblobs/core/engine'
import { errno } from './files.js'

const CODES: Readonly<Record<string, ErrorCode>> = {
  EMFILE: 'exhausted',
  ENFILE: 'exhausted',
  ENOMEM: 'exhausted',
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  // A link, folder or mount where a file or folder of ours should be. Nothing is copied across devices to get around it.
  ELOOP: 'corrupt',
  ENOTDIR: 'corrupt',
  EISDIR: 'corrupt',
  EXDEV: 'corrupt',
  // ENOENT that means "gone" is an EngineFault by the time it leaves: a bare one is a folder that went away.
  ENOENT: 'transient',
  ESTALE: 'transient',
  ENODEV: 'transient',
  ENXIO: 'transient',
  ENOTCONN: 'transient',
  EHOSTDOWN: 'transient',
  EHOSTUNREACH: 'transient',
  ETIMEDOUT: 'transient',
  EAGAIN: 'transient',
  EBUSY: 'transient',
  EINTR: 'transient'
  // EIO is left out on purpose: it is no proof that the bytes are bad, and no promise that they come back.
}

export function classify(error: unknown): ErrorCode {
  if (error instanceof EngineFault) return error.code
  return CODES[errno(error) ?? ''] ?? 'unknown'
}

/**
 * The contents a model run works with: few, so that commands often meet the same one, and of the lengths at which a store
 * changes what it does. Keys come from `node:crypto`, not from the store under test.
 */
import { createHash } from 'node:crypto'
import { type BlobKey, formatKey, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { bytesOf } from '../content.js'

/** One content: what is stored, under which key. `text` is there where the bytes are a string's. */
export interface ModelContent {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly key: BlobKey
  readonly text?: string
}

/** What stands in for the threshold where a store has none. */
const THRESHOLD_ASSUMED = 3000

/** The thresholds a pool may be opened with again, in bytes. */
export function thresholdsAround(threshold: number): readonly number[] {
  return [threshold, threshold >> 1, 2 * threshold]
}

const content = (bytes: Uint8Array<ArrayBuffer>, text?: string): ModelContent => ({
  bytes,
  key: formatKey('sha256', createHash('sha256').update(bytes).digest()),
  ...(text === undefined ? {} : { text })
})

/** A pool of this threshold; where it refuses longer content, such comes last, so that it is met least. */
export interface ContentTerms {
  readonly threshold: number | undefined
  readonly refusesLonger: boolean
}

const made = new Map<string, readonly ModelContent[]>()

/** The contents of a run; steps name them by their place in this list. Made once for the same terms; nobody changes them. */
export function modelContents({ threshold = THRESHOLD_ASSUMED, refusesLonger }: ContentTerms): readonly ModelContent[] {
  const name = `${threshold} ${refusesLonger}`
  const contents = made.get(name) ?? makeContents(threshold)
  made.set(name, contents)
  if (!refusesLonger) return contents
  const isLonger = ({ bytes }: ModelContent) => bytes.length > threshold
  return [...contents.filter(each => !isLonger(each)), ...contents.filter(isLonger)]
}

function makeContents(threshold: number): readonly ModelContent[] {
  const half = threshold >> 1
  const text = 'blob'.repeat(Math.ceil(half / 4) + 1).slice(0, half + 1)
  return [
    content(bytesOf(threshold, 1)),
    content(bytesOf(threshold + 1, 2)),
    // Over the edge of a read window, with a rest.
    content(bytesOf(WINDOW_LENGTH + 4097, 3)),
    content(new Uint8Array(Buffer.from(text)), text),
    content(bytesOf(2 * threshold + 1, 4)),
    content(bytesOf(1, 5)),
    content(bytesOf(threshold + 1, 6)),
    content(new Uint8Array(0), '')
  ]
}

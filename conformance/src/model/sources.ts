/** What the liveness sources of a holder say, and which of them stops whoever asks. */
import type { Holder, SourceModel } from './holder.js'

const isEnumerating = ({ kind }: SourceModel) => kind === 'live' || kind === 'live-async'
const isTable = ({ kind }: SourceModel) => kind === 'table'

/**
 * Who judges what: core asks the sources in batches and keeps what they enumerate; a catalog judges tables of the application,
 * and under a lease perhaps also the enumerated keys.
 */
export class Judgement {
  readonly #sources: readonly SourceModel[]
  readonly #catalogJudges: boolean

  constructor(holder: Holder, catalogJudgesEnumerated: boolean) {
    this.#sources = holder.sources
    this.#catalogJudges = catalogJudgesEnumerated
  }

  /** The first enumerating source that cannot say what is live. */
  failsAtOnce(): string | undefined {
    return this.#sources.find(source => isEnumerating(source) && source.health !== 'well')?.name
  }

  /** The first source that fails when it is asked for these, after those before it have said theirs. */
  failsFor(contents: readonly number[]): string | undefined {
    let asked = contents.filter(content => !this.#isEnumeratedForCore(content))
    for (const { name, kind, health, contents: live } of this.#sources) {
      if (kind !== 'is-live') continue
      if (asked.length === 0) return undefined
      if (health !== 'well') return name
      asked = asked.filter(content => !live.has(content))
    }
    return undefined
  }

  /** What core knows to be live. */
  isLiveForCore(content: number): boolean {
    if (this.#isEnumeratedForCore(content)) return true
    return this.#sources.some(({ kind, contents }) => kind === 'is-live' && contents.has(content))
  }

  /** What the catalog itself judges to be live. */
  isLiveForCatalog(content: number): boolean {
    return this.#sources.some(source => {
      const isJudged = isTable(source) || (this.#catalogJudges && isEnumerating(source))
      return isJudged && source.contents.has(content)
    })
  }

  isLive(content: number): boolean {
    return this.isLiveForCore(content) || this.isLiveForCatalog(content)
  }

  /** The names of all that call it live; `undefined` if one of them cannot say. */
  namesFor(content: number): readonly string[] | undefined {
    if (this.#sources.some(({ health }) => health !== 'well')) return undefined
    return this.#sources.filter(({ contents }) => contents.has(content)).map(({ name }) => name)
  }

  #isEnumeratedForCore(content: number): boolean {
    if (this.#catalogJudges) return false
    return this.#sources.some(source => isEnumerating(source) && source.contents.has(content))
  }
}

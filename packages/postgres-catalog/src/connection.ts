/** A session as the catalog speaks to it: statements name tables as `$.entries`, which becomes the pool's own schema. */
import type { Param, Row, Session, Statement, Value } from '@alkblobs/postgres-session'
import { quoteIdentifier } from '@alkblobs/postgres-session'

/** The statements of one schema, each put together once. */
export class Statements {
  readonly schema: string
  readonly #prefix: string
  readonly #texts = new Map<string, string>()

  constructor(schema: string) {
    this.schema = schema
    this.#prefix = `${quoteIdentifier(schema)}.`
  }

  of(text: string): string {
    let made = this.#texts.get(text)
    if (made === undefined) {
      made = this.qualified(text)
      this.#texts.set(text, made)
    }
    return made
  }

  /** For statements that are said once. */
  qualified(text: string): string {
    return text.replaceAll('$.', () => this.#prefix)
  }
}

export class Connection {
  readonly session: Session
  readonly #statements: Statements

  constructor(session: Session, statements: Statements) {
    this.session = session
    this.#statements = statements
  }

  rows<R extends readonly Value[]>(text: string, ...values: Param[]): Promise<R[]> {
    return this.session.rows<R>(this.#statements.of(text), values)
  }

  async row<R extends readonly Value[]>(text: string, ...values: Param[]): Promise<R | undefined> {
    return (await this.rows<R>(text, ...values))[0]
  }

  binaryRows(statement: Statement): Promise<Row[]> {
    return this.session.binaryRows({ ...statement, text: this.#statements.of(statement.text) })
  }

  /** Resolves with the number of rows it touched. */
  run(text: string, ...values: Param[]): Promise<number> {
    return this.session.run(this.#statements.of(text), values)
  }
}

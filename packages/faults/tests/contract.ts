/** The operations of the contract and the facade, read from their types: nobody has to remember to list a new one. */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const core = join(dirname(fileURLToPath(import.meta.url)), '../../core/src')

interface Program {
  readonly checker: ts.TypeChecker
  symbol(file: string, name: string): ts.Type
}

let made: Program | undefined

/** Reading the types takes seconds, once. */
function programOf(): Program {
  made ??= makeProgram()
  return made
}

function makeProgram(): Program {
  const files = ['engine.ts', 'store.ts'].map(name => join(core, name))
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true
  }
  const program = ts.createProgram(files, options)
  const checker = program.getTypeChecker()
  return {
    checker,
    symbol(file, name) {
      const source = program.getSourceFile(join(core, file))
      const module = source && checker.getSymbolAtLocation(source)
      const found = module && checker.getExportsOfModule(module).find(each => each.name === name)
      if (found === undefined) throw new Error(`${file} exports no ${name}`)
      const real = found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found
      return checker.getDeclaredTypeOfSymbol(real)
    }
  }
}

const isLater = (name: string) => /^(Promise|AsyncIterable|AsyncGenerator|AsyncIterableIterator)$/.test(name)

/** Reads one interface: its methods that answer later, and the interfaces that its members and answers are. */
function membersOf({ checker }: Program, type: ts.Type) {
  const methods: { name: string; answers: ts.Type[]; isOptional: boolean }[] = []
  const parts: { name: string; type: ts.Type }[] = []
  for (const property of checker.getPropertiesOfType(type)) {
    if (/^(__|#)/.test(property.name)) continue
    const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0
    const own = checker.getNonNullableType(checker.getTypeOfSymbol(property))
    const answers = own.getCallSignatures().map(signature => signature.getReturnType())
    const later = answers.filter(answer => {
      const kinds = answer.isUnion() ? answer.types : [answer]
      return kinds.some(kind => isLater(kind.symbol?.name ?? ''))
    })
    if (later.length > 0) {
      const inner = later.flatMap(answer => checker.getTypeArguments(answer as ts.TypeReference).slice(0, 1))
      methods.push({ name: property.name, answers: inner.map(each => checker.getNonNullableType(each)), isOptional })
    } else if (own.getCallSignatures().length === 0) parts.push({ name: property.name, type: own })
  }
  return { methods, parts }
}

export interface Operation {
  readonly path: string
  readonly isOptional: boolean
}

/** Every method of the contract that answers later, under the path that leads to it: `catalog.lease.live.add`. */
export function contractOperations(): Operation[] {
  const program = programOf()
  const found: Operation[] = []
  /** What a method's answer is called, where the answer has methods of its own. */
  const names: Readonly<Record<string, string>> = {
    'catalog.lease': 'catalog.lease',
    'bodies.create': 'bodies.writer',
    'catalog.joining.join': 'catalog.joining.joined'
  }
  const walk = (path: string, type: ts.Type) => {
    const { methods, parts } = membersOf(program, type)
    for (const { name, answers, isOptional } of methods) {
      found.push({ path: `${path}.${name}`, isOptional })
      for (const answer of answers) {
        const hasMethods = hasLater(program, answer)
        const part = names[`${path}.${name}`]
        if (hasMethods && path !== 'definition' && part === undefined)
          throw new Error(`the answer of ${path}.${name} has methods, and no name`)
        if (hasMethods && part !== undefined) walk(part, answer)
      }
    }
    for (const part of parts)
      if (hasLater(program, part.type)) walk(path === 'engine' ? part.name : `${path}.${part.name}`, part.type)
  }
  walk('definition', program.symbol('engine.ts', 'EngineDefinition'))
  walk('engine', program.symbol('engine.ts', 'Engine'))
  return found
}

function hasLater(program: Program, type: ts.Type): boolean {
  if ((type.flags & ts.TypeFlags.Object) === 0 || program.checker.isArrayType(type)) return false
  const name = type.symbol?.name ?? ''
  if (name === 'AbortSignal' || name === 'Uint8Array') return false
  const { methods, parts } = membersOf(program, type)
  return methods.length > 0 || parts.some(part => hasLater(program, part.type))
}

/** Every method of the facade that answers later, and those whose answer is worked with afterwards. */
export function facadeOperations(): string[] {
  const program = programOf()
  const { methods } = membersOf(program, program.symbol('store.ts', 'Store'))
  return ['open', 'writer', ...methods.map(({ name }) => name)]
}

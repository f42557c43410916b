// The program a user would write first, in the four forms pack:check tries in an empty project: an ES module, a CommonJS
// file that requires the packages, and both for the type checker.

const body = `
async function tour(options) {
  const store = await openStore(options)
  try {
    for (const content of ['hello', 'x'.repeat(5000)]) {
      const receipt = await store.put(content)
      const blob = await store.get(receipt.key)
      const text = await blob?.text()
      if (text !== content) throw new Error('put ' + content.length + ' characters, got ' + text?.length)
      await receipt.release()
    }
  } finally {
    await store.close()
  }
}

async function main() {
  const pool = mkdtempSync(join(tmpdir(), 'alkblobs-pool-'))
  try {
    await tour({ kv: mem() })
    await tour({ kv: sqlite({ file: join(pool, 'kv.db') }), large: local({ root: join(pool, 'large') }), threshold: 1024 })
  } finally {
    rmSync(pool, { recursive: true, force: true })
  }
}
main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
`

const names = {
  'node:fs': ['mkdtempSync', 'rmSync'],
  'node:os': ['tmpdir'],
  'node:path': ['join'],
  '@alkblobs/core': ['openStore'],
  '@alkblobs/engine-mem': ['mem'],
  '@alkblobs/engine-local': ['local'],
  '@alkblobs/engine-sqlite': ['sqlite']
}
// Loaded for their own sake: each exported path must resolve and run.
const others = ['@alkblobs/core/engine', '@alkblobs/conformance', '@alkblobs/conformance/broken', '@alkblobs/faults']

const lines = line => Object.entries(names).map(([from, list]) => line(list.join(', '), from))
const imports = [
  ...lines((list, from) => `import { ${list} } from '${from}'`),
  ...others.map(from => `import '${from}'`)
]
const requires = [
  ...lines((list, from) => `const { ${list} } = require('${from}')`),
  ...others.map(from => `require('${from}')`)
]
const typedBody = body.replace('tour(options)', 'tour(options: Parameters<typeof openStore>[0])')

// A bundler may rename a class, and what an error is called is what a log shows.
const named = `
for (const [name, value] of Object.entries(core)) {
  const isError = typeof value === 'function' && value.prototype instanceof Error
  if (isError && value.name !== name) throw new Error(name + ' calls itself ' + value.name)
}
`

/** The files of the empty project, by name. */
export const consumerFiles = {
  'import.mjs': `${imports.join('\n')}\nimport * as core from '@alkblobs/core'\n${named}${body}`,
  'require.cjs': `${requires.join('\n')}\n${body}`,
  'esm.mts': `${imports.join('\n')}\n${typedBody}`,
  'cjs.cts': `${imports.join('\n')}\n${typedBody}`
}

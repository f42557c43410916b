// A process that is about to be stopped in the middle of things: stores over several pools, each with one operation that has come to
// the phase it was given. It says when all of them stand there, and goes on when it is told to.
import { gate, tapped } from '@alkblobs/conformance'
import { contentOf, given, heard, openPool, say } from './fleet-pool.mjs'

/** Stops the first call of one step of one engine, before or after its effect. */
function halting({ step, side }) {
  const closed = gate()
  let isPassed = false
  const pass = async at => {
    if (isPassed || at !== side) return
    isPassed = true
    await closed.pass()
  }
  const around = inner => {
    const method = inner[step]
    if (typeof method !== 'function') return {}
    return {
      async [step](...args) {
        await pass('before')
        const answer = await method.apply(inner, args)
        await pass('after')
        return answer
      }
    }
  }
  return { closed, wrap: definition => tapped(definition, { catalog: around, bodies: around, writer: around }) }
}

/** Chunks without a length: a put of them asks for no entry before its bytes are there. */
async function* streamed(bytes) {
  for (let at = 0; at < bytes.length; at += 400_000) yield bytes.subarray(at, at + 400_000)
}

const operations = {
  async sweep(store, { live }) {
    store.protect({ name: 'references', live: () => live })
    const { aborted, deleted, cancelledByArbitration, failed } = await store.sweep()
    return { aborted, deleted, cancelled: cancelledByArbitration, failed: failed.length }
  },
  async put(store, { content }) {
    const receipt = await store.put(streamed(contentOf(content.name, content.length)))
    return { key: receipt.key, created: receipt.created, held: receipt.pin.held }
  }
}

const running = []
for (const task of given.tasks) {
  const { closed, wrap } = halting(task.phase)
  const store = await openPool(task.place, { name: task.name, wrap, ...task.options })
  const outcome = operations[task.operation](store, task).then(
    value => ({ value }),
    error => ({ error: { code: error.code, kind: error.kind, message: error.stack } })
  )
  // What ends before its phase ends the wait for it too.
  await Promise.race([closed.reached, outcome])
  running.push({ store, closed, outcome })
}
say({ at: 'phases' })
for await (const _ of heard()) {
  for (const { closed } of running) closed.open()
  say({ outcomes: await Promise.all(running.map(({ outcome }) => outcome)) })
  break
}
for (const { store } of running) await store.close()
process.exit(0)

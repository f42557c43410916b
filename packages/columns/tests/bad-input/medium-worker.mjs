// A process of its own under a limit that a test cannot lay on itself: another user, or a bound on the length of files. Runs on
// the built packages and prints what happened as one line of JSON.
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'

const { file, root, act } = JSON.parse(process.argv[2])
const kv = file === undefined ? mem() : sqlite({ file })

const outcomes = []
async function note(name, run) {
  try {
    await run()
    outcomes.push({ name, ok: true })
  } catch (error) {
    const { code, kind, reason, message } = error
    outcomes.push({ name, code, kind, reason, message, stack: code === undefined ? error.stack : undefined })
  }
}

let store
await note('open', async () => {
  store = await openStore({ kv, large: local({ root }), threshold: 100_000 })
})
if (store !== undefined) {
  if (act === 'read') {
    await note('list', async () => {
      for await (const { key } of store.list()) {
        const length = (await (await store.get(key)).bytes()).length
        outcomes.push({ name: 'entry', length })
      }
    })
  }
  await note('put large', () => store.put(new Uint8Array(4_000_000).fill(1)))
  await note('put stream', () =>
    store.put(
      (async function* () {
        for (let i = 0; i < 40; i++) yield new Uint8Array(100_000).fill(2)
      })()
    )
  )
  await note('put small', () => store.put('small'))
  await note('usage', async () => {
    const { entries, stages, trash } = await store.usage()
    outcomes.push({ name: 'left', entries, stages, trash })
  })
  await note('close', () => store.close())
}
console.log(JSON.stringify(outcomes))

// A process that holds pins, is stopped for longer than they live, and says what it believes when it goes on.
import { contentOf, given, heard, openPool, say } from './fleet-pool.mjs'

const { place, name, contents, options } = given
const store = await openPool(place, { name, ...options })
const bytesOf = content => contentOf(content.name, content.length)
let receipts = await Promise.all(contents.map(content => store.put(bytesOf(content))))
const early = receipts

const answers = {
  /** Nothing is asked of the server for this. */
  beliefs: () => early.map(({ pin }) => ({ held: pin.held, isLost: pin.signal.aborted })),
  /** A delete renews what its store holds, and ends what was released, before it looks. */
  renew: () => store.delete(`blake3:${'0'.repeat(64)}`),
  counted: () => store.pins().length,
  async putAgain() {
    receipts = await Promise.all(contents.map(content => store.put(bytesOf(content))))
    return receipts.map(({ created }) => created)
  },
  releaseEarly: () => Promise.all(early.map(receipt => receipt.release())).then(() => {}),
  close: () => store.close()
}
say({ keys: receipts.map(({ key }) => key) })
for await (const { ask } of heard()) say({ answer: await answers[ask]() })

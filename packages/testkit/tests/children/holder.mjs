// Holds the server of its environment's choice and says where it is; `stay` until it is killed. Needs a build.
import { holdForRun, noServer, sharedServer } from '@alkblobs/testkit'

try {
  const { line, release } = await holdForRun()
  const reason = noServer()
  const server = reason === undefined ? await sharedServer() : undefined
  process.send({ line, reason, kind: server?.kind, port: server?.port, url: server?.url })
  if (process.argv[2] === 'stay') setInterval(() => undefined, 1_000)
  else {
    await release()
    process.disconnect()
  }
} catch (error) {
  process.send({ failed: error.message })
  process.disconnect()
}

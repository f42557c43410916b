// A process that uses sessions while the server under them is killed, cut and started again. It imports the package as it
// is published, so it needs a build. Anything that is thrown outside of a promise ends it, as it would end an application.
import { classifyPostgres, Sessions } from '@alkblobs/postgres-session'

const [url] = process.argv.slice(2)
const call = (ms = 5_000) => ({ deadlineMs: performance.now() + ms })
const over = new Sessions({ url, poolMax: 6 }, { connectTimeoutMs: 1_000, lockTimeoutMs: 1_000 })
const counts = {}
const count = name => {
  counts[name] = (counts[name] ?? 0) + 1
}

let isOver = false
const tell = promise =>
  promise.then(
    () => count('done'),
    error => count(classifyPostgres(error))
  )

async function* endless() {
  for (let n = 0; n < 200; n++) yield Buffer.from('1\n'.repeat(5_000))
}

const jobs = [
  () =>
    over.use(call(), session =>
      Promise.all(Array.from({ length: 150 }, (_, n) => session.rows('SELECT $1::int', [n])))
    ),
  () =>
    over.transaction(call(), async session => {
      await session.run('CREATE TEMPORARY TABLE x (v int) ON COMMIT DROP')
      session.run('INSERT INTO pg_temp.x VALUES (1)')
      await session.copyIn('COPY pg_temp.x FROM STDIN', endless())
    }),
  () => over.use(call(), session => session.binaryRows({ text: 'SELECT generate_series(1, 200000)' })),
  async () => {
    const held = await over.hold(call())
    await held.rows('SELECT pg_advisory_lock(floor(random() * 1000)::int)')
    await new Promise(resolve => setTimeout(resolve, Math.random() * 50))
    await held.rows('SELECT 1').finally(() => (Math.random() < 0.5 ? held.release() : held.destroy()))
  }
]

const workers = jobs.map(async job => {
  while (!isOver) {
    await tell(job())
    // A server that is away refuses at once.
    await new Promise(resolve => setTimeout(resolve, 5))
  }
})

process.on('message', async message => {
  if (message === 'count') return process.send(counts)
  isOver = true
  await Promise.all(workers)
  await over.use(call(), session => session.rows('SELECT 1'))
  await over.close()
  process.send({ ...counts, over: true })
  // From here on nothing may keep the process alive.
  process.disconnect()
})
process.send('ready')

/** What a run prints: each row with its contestants, their spread and what they leave out, and the ratios with their goals. */
import { createRequire } from 'node:module'
import { availableParallelism, cpus, loadavg } from 'node:os'

const require = createRequire(import.meta.url)
const PEERS = ['better-sqlite3', 'cacache', '@napi-rs/blake-hash']

/** Local disks make some 50,000. */
const FILES_PER_SECOND_MIN = 15_000
const SLOW_TO_MAKE_FILES =
  'WARNING: that is slow. Some disks are for minutes after many files were deleted; until then cacache and plain files look too bad'

const print = line => process.stdout.write(`${line}\n`)

/** The conditions of the run. */
export function announce({ scale }, { filesPerSecond }) {
  const versions = PEERS.map(name => `${name} ${require(`${name}/package.json`).version}`)
  print(
    `alkblobs bench, ${scale.name}: Node ${process.versions.node}, ${availableParallelism()} cores (${cpus()[0]?.model})`
  )
  print(`peers: ${versions.join(', ')}`)
  print(
    'a figure is the median of the rounds (least to greatest); durable: synced to the disk before it counts as done'
  )
  print(`the disk makes ${plain(filesPerSecond)} empty files a second`)
  if (filesPerSecond < FILES_PER_SECOND_MIN) print(SLOW_TO_MAKE_FILES)
  printLoad('at the start')
}

/** What else the machine does: figures drift with it, ratios hardly. */
export function printLoad(when) {
  print(
    `load ${when}: ${loadavg()
      .map(load => load.toFixed(2))
      .join(' ')}`
  )
}

export function printRow({ id, title, unit, contestants, ratios }) {
  print(`\n${id}: ${title}`)
  const width = Math.max(...contestants.map(({ name }) => name.length))
  for (const { name, note, median, min, max } of contestants) {
    const spread = `(${plain(min)} to ${plain(max)})`
    print(`  ${name.padEnd(width)}  ${plain(median).padStart(8)} ${unit}  ${spread.padEnd(22)} ${note}`)
  }
  for (const ratio of ratios) print(`  ${verdict(ratio)}`)
}

export function printVerdicts(ratios) {
  const reached = ratios.filter(({ pass }) => pass)
  print(`\n${reached.length} of ${ratios.length} goals reached`)
  for (const ratio of ratios) if (!ratio.pass) print(`  ${verdict(ratio)}`)
}

function verdict({ id, value, goal, compare, pass, unit, min, max, against }) {
  const of = unit === 'ratio' ? '' : ` ${unit}`
  const found = `${plain(value)}${of} (${plain(min)} to ${plain(max)})`
  return `${pass ? 'reached' : 'missed '}  ${id}: ${found}, goal ${compare} ${goal}${of}: ${against}`
}

function plain(figure) {
  if (Math.abs(figure) >= 100) return Math.round(figure).toLocaleString('en')
  return figure.toFixed(Math.abs(figure) >= 10 ? 1 : 2)
}

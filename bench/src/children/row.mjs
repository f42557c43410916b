/** One row, from its preparation to its ratios, in a process of its own: no row finds the heap that another one left. */
import { answer, argument } from '../child.mjs'
import { race } from '../rounds.mjs'
import { rows } from '../rows/index.mjs'
import { siteAt } from '../site.mjs'
import { summary } from '../statistics.mjs'

const { id, root, scale, server } = argument()
const row = rows.find(each => each.id === id)
answer(await measured(row, { site: siteAt(root, id), scale, server }))

/** Prepares the row, races its contestants, and puts away again what they opened. */
async function measured({ unit, titleOf, ...row }, bench) {
  const opened = []
  try {
    const contestants = await row.contestants({ ...bench, closing: close => opened.push(close) })
    const rounds = await race(contestants, { rounds: row.roundsOf?.(bench) ?? bench.scale.rounds, warmUp: row.warmUp })
    const shown = contestants.map(({ id, name, note }) => ({
      name,
      note,
      ...summary(rounds.map(round => round[id].figure))
    }))
    const ratios = row.ratiosOf(bench).map(ratio => judged(ratio, rounds))
    const series = row.seriesOf && drawn(row.seriesOf(bench), rounds)
    return { id: row.id, unit, title: titleOf(bench), contestants: shown, ratios, series }
  } finally {
    for (const close of opened.reverse()) await close()
  }
}

/** The points of a chart, as they were measured. */
function drawn({ lines, ...rest }, rounds) {
  const pointOf = ({ x, id, scale }) => ({ x, y: summary(rounds.map(round => round[id].figure)).median * scale })
  return { ...rest, lines: lines.map(({ name, points }) => ({ name, points: points.map(pointOf) })) }
}

function judged({ id, value, atLeast, atMost, unit = 'ratio', against }, rounds) {
  const { median, min, max } = summary(rounds.map(value))
  const isFloor = atLeast !== undefined
  const pass = isFloor ? median >= atLeast : median <= atMost
  return {
    id,
    value: median,
    goal: isFloor ? atLeast : atMost,
    compare: isFloor ? '>=' : '<=',
    pass,
    unit,
    min,
    max,
    against
  }
}

/**
 * Charts: a series of a run as an SVG file, both axes logarithmic. `node bench/src/chart.mjs <json> <folder>` draws every series of a run
 * that was written with `--json`, each into `<id>.svg`. Colours are told apart in light and dark, and each line has its name at its end.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const WIDTH = 720
const HEIGHT = 400
const MARGIN = { left: 70, right: 160, top: 46, bottom: 52 }
const COLOURS = ['#0b7285', '#d9480f', '#5f3dc4', '#2b8a3e', '#868e96']
const GRID = '#868e9655'
const TEXT = '#868e96'
const NAME_HEIGHT = 16

/** A series as the text of an SVG file. */
export function chartOf({ title, x, y, lines }) {
  const across = axis(lines, 'x', { from: MARGIN.left, to: WIDTH - MARGIN.right })
  const up = axis(lines, 'y', { from: HEIGHT - MARGIN.bottom, to: MARGIN.top })
  const parts = [
    text({ x: MARGIN.left, y: 24 }, title, 'font-size="15" font-weight="600"'),
    text({ x: (MARGIN.left + WIDTH - MARGIN.right) / 2, y: HEIGHT - 12 }, x, 'text-anchor="middle"'),
    text({ x: MARGIN.left, y: MARGIN.top - 6 }, y),
    ...across.ticks.map(tick => grid({ x1: tick.at, y1: up.from, x2: tick.at, y2: up.to })),
    ...across.ticks.map(tick => text({ x: tick.at, y: up.from + 18 }, tick.name, 'text-anchor="middle"')),
    ...up.ticks.map(tick => grid({ x1: across.from, y1: tick.at, x2: across.to, y2: tick.at })),
    ...up.ticks.map(tick => text({ x: across.from - 8, y: tick.at + 4 }, tick.name, 'text-anchor="end"')),
    ...lines.map((line, i) => drawn(line.points, { across, up, colour: COLOURS[i % COLOURS.length] })),
    ...named(lines, { across, up })
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="${TEXT}">\n<title>${title}</title>\n${parts.join('\n')}\n</svg>\n`
}

/** Where values lie along an axis of powers of ten, and which of these are named. */
function axis(lines, coordinate, { from, to }) {
  const values = lines.flatMap(({ points }) => points.map(point => point[coordinate])).filter(value => value > 0)
  const least = Math.floor(Math.log10(Math.min(...values)))
  const most = Math.max(least + 1, Math.ceil(Math.log10(Math.max(...values))))
  const place = value => from + ((Math.log10(value) - least) / (most - least)) * (to - from)
  const ticks = Array.from({ length: most - least + 1 }, (_, i) => 10 ** (least + i))
  return { from, to, place, ticks: ticks.map(value => ({ at: place(value), name: short(value) })) }
}

function drawn(points, { across, up, colour }) {
  const at = points.map(({ x, y }) => `${round(across.place(x))},${round(up.place(y))}`)
  const dots = at.map(place => `<circle cx="${place.replace(',', '" cy="')}" r="3" fill="${colour}"/>`)
  return `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}`
}

/** The names at the ends of their lines, none over another. */
function named(lines, { across, up }) {
  const names = lines
    .map(({ name, points }, i) => ({ name, colour: COLOURS[i % COLOURS.length], y: up.place(points.at(-1).y) + 4 }))
    .sort((one, other) => one.y - other.y)
  let last = Number.NEGATIVE_INFINITY
  return names.map(({ name, colour, y }) => {
    last = Math.max(y, last + NAME_HEIGHT)
    return text({ x: across.to + 10, y: last }, name, `fill="${colour}"`)
  })
}

function grid({ x1, y1, x2, y2 }) {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${GRID}"/>`
}

function text({ x, y }, content, attributes = '') {
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${content}</text>`
}

function short(value) {
  if (value >= 1e9) return `${value / 1e9}G`
  if (value >= 1e6) return `${value / 1e6}M`
  if (value >= 1e3) return `${value / 1e3}k`
  return `${Number(value.toPrecision(1))}`
}

function round(value) {
  return Math.round(value * 10) / 10
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [json, folder] = process.argv.slice(2)
  mkdirSync(folder, { recursive: true })
  for (const { id, ...series } of JSON.parse(readFileSync(json, 'utf8')).series) {
    writeFileSync(join(folder, `${id}.svg`), chartOf(series))
  }
}

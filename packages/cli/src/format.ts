/** How lengths, times, counts and file names are written for people. Machines get plain numbers by `--json`. */

const UNITS = ['kB', 'MB', 'GB', 'TB', 'PB']

/** A length in decimal units: `812 B`, `1.4 MB`. */
export function bytes(length: number): string {
  if (length < 1000) return `${Math.round(length)} B`
  let value = length
  let unit = ''
  for (const next of UNITS) {
    if (value < 999.5) break
    value /= 1000
    unit = next
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`
}

/** A time in its two largest units: `850 ms`, `3.2 s`, `4 min 10 s`, `1 h`, `2 d 3 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`
  const seconds = Math.round(milliseconds / 1000)
  if (seconds < 60) return seconds < 10 ? `${Number((milliseconds / 1000).toFixed(1))} s` : `${seconds} s`
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's']
  ]
  const first = parts.findIndex(([value]) => value > 0)
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')
}

/** A count with its noun: `1 entry`, `12,345 entries`. */
export function count(number: number, singular: string, plural = `${singular}s`): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? singular : plural}`
}

/** `entries`, counted. */
export const entries = (number: number): string => count(number, 'entry', 'entries')

/** A name without the control characters that would move the cursor or forge a line: each as `\x1b`. */
export function printable(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this function is about.
  return name.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, each => {
    const code = each.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}

// Says where it is and waits, holds descriptors, or writes until it may not.
import { closeSync, openSync, writeSync } from 'node:fs'
import { Markers } from '../../dist/index.js'

const [task, file] = process.argv.slice(2)
const markers = new Markers()
if (task === 'phases') {
  markers.say({ fact: 1 })
  const word = await markers.reach('first')
  markers.say({ word })
  await markers.reach('second')
} else if (task === 'descriptors') {
  const open = []
  try {
    for (;;) open.push(openSync('/dev/null', 'r'))
  } catch (error) {
    for (const each of open) closeSync(each)
    markers.say({ code: error.code, opened: open.length })
  }
} else if (task === 'write') {
  try {
    const descriptor = openSync(file, 'w')
    for (;;) writeSync(descriptor, Buffer.alloc(64 * 1024))
  } catch (error) {
    markers.say({ code: error.code })
  }
} else if (task === 'ticks') {
  for (let tick = 0; ; tick++) {
    markers.say({ tick })
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
markers.close()

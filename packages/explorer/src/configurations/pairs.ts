/** Two instances with two operations each over two keys: every writer beside every other, in both forms and both tiers. */
import type { ActorPlan, Configuration, Operation } from '../configuration.js'
import { forget, maintain, pin, put, remove, sweep } from '../operations.js'
import { type Listed, refers } from './listed.js'

/** What uses content: it puts and pins, takes references, deletes. */
const WRITERS: Readonly<Record<string, readonly Operation[]>> = {
  'put and refer, put': [put('K1', refers), put('K2')],
  'hand over, put a stream': [pin('K1', refers), put('K2', { streams: true })],
  'put, delete the other': [put('K1'), remove('K2')],
  'delete, put again and refer': [remove('K1'), put('K1', refers)],
  'put and refer, forget': [put('K1', refers), forget('K1')]
}

/** What collects, or uses the same content at the same time. */
const OTHERS: Readonly<Record<string, readonly Operation[]>> = {
  'sweep, sweep': [sweep(), sweep()],
  'delete, sweep': [remove('K1'), sweep()],
  'sweep, put and refer': [sweep(), put('K2', refers)],
  'put and keep, delete the other': [put('K1', { keeps: true }), remove('K2')],
  'delete, delete': [remove('K1'), remove('K2')],
  'maintain, sweep': [maintain(), sweep()]
}

/** What the large tier makes too large for every run, beside which of the others. */
const LONG_WITH: Readonly<Record<string, readonly string[]>> = {
  'put and refer, put': Object.keys(OTHERS),
  'hand over, put a stream': Object.keys(OTHERS).filter(other => other !== 'put and keep, delete the other'),
  'delete, put again and refer': Object.keys(OTHERS).filter(other => other !== 'delete, delete'),
  'put and refer, forget': ['sweep, put and refer', 'maintain, sweep']
}

function form(name: Configuration['form']): Pick<Configuration, 'form' | 'before'> {
  const created = [put('K1'), put('K2')]
  return { form: name, before: name === 'durable' ? [...created, sweep()] : created }
}

export function pairs(): Listed[] {
  const all: Listed[] = []
  for (const kind of ['inline', 'durable'] as const) {
    for (const large of [false, true]) {
      for (const [writer, writes] of Object.entries(WRITERS)) {
        for (const [other, does] of Object.entries(OTHERS)) {
          const name = `${kind}, ${large ? 'large' : 'small'}: ${writer} | ${other}`
          const actors: ActorPlan[] = [
            { on: 'A', does: writes },
            { on: 'B', does }
          ]
          const isLong = large && LONG_WITH[writer]?.includes(other) === true
          all.push({ ...form(kind), name, large, actors, isLong })
        }
      }
    }
  }
  return all
}

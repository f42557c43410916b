/** The catalog, put together from its rooms. */
import { constants } from 'node:buffer'
import type { Catalog } from '@alkblobs/core/engine'
import type { Medium } from '../medium.js'
import type { Session } from '../session.js'
import { entries } from './entries.js'
import { explain } from './explain.js'
import { lease } from './lease.js'
import { maintain } from './maintain.js'
import { meta } from './meta.js'
import { pins } from './pins.js'
import { publish } from './publish.js'
import { remove } from './remove.js'
import { stages } from './stages.js'
import { trash } from './trash.js'
import { window } from './window.js'

export function catalogOf(medium: Medium, session: Session, form: Catalog['form']): Catalog {
  return {
    form,
    inlineLengthMax: constants.MAX_LENGTH,
    meta: meta(medium),
    ...entries(medium),
    ...explain(medium),
    ...stages(medium),
    ...publish(medium, session),
    ...pins(medium, session),
    ...lease(medium, session),
    ...window(medium),
    ...remove(medium, session),
    ...trash(medium),
    ...maintain(medium)
  }
}

/** Planted bugs of a fleet: what only several owners, an expiry by the server's clock, or many pins show. */
import type { Bug } from '../bug.js'
import { Rules } from '../durable/rules.js'

export const revivesInAFleet: Bug = {
  name: 'a renewal revives a pin that has expired',
  breaks: 'ENG-RENEW-2: in a fleet nobody asks for a revival',
  rules: class extends Rules {
    override renewPin(pin: Parameters<Rules['renewPin']>[0], request: Parameters<Rules['renewPin']>[1]): boolean {
      return super.renewPin(pin, { ...request, revive: true })
    }
  }
}

export const renewsFirstPage: Bug = {
  name: 'a renewal moves the first page of rows, and answers for all',
  breaks: 'ENG-RENEW-1',
  catalog: inner => ({
    ...inner,
    renew: (request, call) => inner.renew({ ...request, pins: request.pins.slice(0, 1) }, call)
  })
}

export const ignoresOtherOwners: Bug = {
  name: 'a sweep and a delete look at the pins of their own instance',
  breaks: 'ENG-REMOVE-2: of any owner',
  rules: class extends Rules {
    override isPinned(key: Parameters<Rules['isPinned']>[0]): boolean {
      return this.medium.pinnedBy(key, this.now()).some(owner => owner.startsWith(`${this.who}.`))
    }
  }
}

export const expiresByOwnClock: Bug = {
  name: 'the expiry of a pin is told by the clock of its instance',
  breaks: 'ENG-6: expiry is by the clock of the server',
  rules: class extends Rules {
    override writePin(key: Parameters<Rules['writePin']>[0], { row, ttlMs }: Parameters<Rules['writePin']>[1]): void {
      super.writePin(key, { row, ttlMs: ttlMs - this.medium.clockAheadMs })
    }
  }
}

export const renewalMakesRows: Bug = {
  name: 'a renewal makes the row that it does not find',
  breaks: 'ENG-RENEW-2: it makes none',
  rules: class extends Rules {
    override renewPin(pin: Parameters<Rules['renewPin']>[0], request: Parameters<Rules['renewPin']>[1]): boolean {
      const isThere = this.medium.pins.get(pin.key)?.has(pin.pin.owner) === true
      if (!isThere) this.writePin(pin.key, { row: pin.pin, ttlMs: request.pinTtlMs })
      return super.renewPin(pin, request)
    }
  }
}

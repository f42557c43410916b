/** Planted bugs of the durable form: each takes one rule of it away. */
import type { Entry, Publication, StageId } from '@alkblobs/core/engine'
import type { Bug } from '../bug.js'
import { Rules } from '../durable/rules.js'

export const forgetsToCancelOnExisted: Bug = {
  name: 'a put that finds the entry forgets to cancel',
  breaks: 'ENG-PUBLISH-6',
  rules: class extends Rules {
    override existed({ key, pin }: Publication): void {
      if (pin !== undefined) this.writePin(key, pin)
    }
  }
}

export const pinDoesNotCancel: Bug = {
  name: 'a pin does not cancel',
  breaks: 'ENG-PIN-1, schedule 2 of the model',
  rules: class extends Rules {
    override pin(request: Parameters<Rules['pin']>[0]): Entry | undefined {
      const entry = this.medium.entries.get(request.key)?.entry
      if (entry !== undefined) this.writePin(request.key, { row: request.pin, ttlMs: request.ttlMs })
      return entry
    }
  }
}

export const marksAreNotCancelled: Bug = {
  name: 'puts and pins do not cancel the mark of a delete',
  breaks: 'ENG-MARK-1 with ENG-PUBLISH-6, schedule 3 of the model',
  rules: class extends Rules {
    override cancelMarks(): void {}
  }
}

export const marksUnderPins: Bug = {
  name: 'a delete marks what is pinned',
  breaks: 'ENG-MARK-1',
  rules: class extends Rules {
    override isPinnedAtMark(): boolean {
      return false
    }
  }
}

export const releaseIgnoresGeneration: Bug = {
  name: 'a release ends the row of a newer put',
  breaks: 'ENG-RELEASE-1, schedule 4 of the model',
  rules: class extends Rules {
    override releasePin({ key, pin }: Parameters<Rules['releasePin']>[0]): void {
      this.endPin(key, pin.owner)
    }
  }
}

export const releaseIgnoresOwner: Bug = {
  name: 'a release ends the pins of everybody',
  breaks: 'ENG-RELEASE-1',
  rules: class extends Rules {
    override releasePin({ key }: Parameters<Rules['releasePin']>[0]): void {
      this.medium.pins.delete(key)
    }
  }
}

export const repairsByKey: Bug = {
  name: 'a repair removes by key, wherever the entry lies by now',
  breaks: 'ENG-REMOVE-2 (`at`), schedule 6 of the model',
  rules: class extends Rules {
    override liesAt(): boolean {
      return true
    }
  }
}

export const stagesWithoutSecondLook: Bug = {
  name: 'a staging does not look at pins again',
  breaks: 'ENG-WINDOW-1, the second look',
  rules: class extends Rules {
    override isPinnedAtStaging(): boolean {
      return false
    }
  }
}

export const publishesExpiredStage: Bug = {
  name: 'a publication does not look whether its stage has expired',
  breaks: 'ENG-PUBLISH-2',
  rules: class extends Rules {
    override isPublishable(): boolean {
      return true
    }
  }
}

export const revivesWithoutCancelling: Bug = {
  name: 'a renewal that revives a pin does not cancel',
  breaks: 'ENG-RENEW-3',
  rules: class extends Rules {
    override revived(): void {}
  }
}

export const leaseForTwo: Bug = {
  name: 'two sweeps hold the lease',
  breaks: 'ENG-LEASE-1',
  rules: class extends Rules {
    override isLeaseFree(): boolean {
      return true
    }
    override checkLease(): void {}
  }
}

export const leaseIsNotFenced: Bug = {
  name: 'a sweep that lost its lease removes all the same',
  breaks: 'ENG-REMOVE-1',
  rules: class extends Rules {
    override checkLease(): void {}
  }
}

export const removesWithoutRow: Bug = {
  name: 'a removal takes a mark that is gone for one that stands',
  breaks: 'ENG-REMOVE-2',
  rules: class extends Rules {
    override isStanding(row: { readonly cancelled: boolean } | undefined): boolean {
      return row === undefined || !row.cancelled
    }
  }
}

export const deleteEndsCandidacy: Bug = {
  name: "a delete ends a sweep's row",
  breaks: 'ENG-REMOVE-6',
  rules: class extends Rules {
    override endCandidacy(item: Parameters<Rules['endCandidacy']>[0]) {
      this.medium.window.delete(item.key)
      return super.endCandidacy(item)
    }
  }
}

export const dueAtOnce: Bug = {
  name: 'a candidate is due without waiting out the window delay',
  breaks: 'ENG-WINDOW-2',
  rules: class extends Rules {
    override isDue(): boolean {
      return true
    }
  }
}

export const reapsUnexpired: Bug = {
  name: 'maintenance ends pins that have not expired',
  breaks: 'ENG-MAINTAIN-1',
  rules: class extends Rules {
    override maintain() {
      this.medium.pins.clear()
      return super.maintain()
    }
  }
}

export const healingLeaks: Bug = {
  name: 'a healing forgets the bytes it replaces',
  breaks: 'ENG-PUBLISH-5',
  rules: class extends Rules {
    override replaces(): void {}
  }
}

export const unstageLeaks: Bug = {
  name: 'the end of a stage leaves no trash',
  breaks: 'ENG-STAGE-3',
  rules: class extends Rules {
    override trashStage(stage: StageId): boolean {
      return this.medium.stages.delete(stage)
    }
  }
}

export const stagesAreUnknown: Bug = {
  name: 'a scan takes the body of a stage for an orphan',
  breaks: 'ENG-TRASH-3',
  rules: class extends Rules {
    override isKnown(found: Parameters<Rules['isKnown']>[0]): boolean {
      return found.sealed !== undefined && this.medium.entries.has(found.sealed.key)
    }
  }
}

let begunMs: number | undefined

/** What core gives every call to answer in, so that the call tells when it began. */
const OPERATION_TIMEOUT_MS = 30_000

export const stampsAtStart: Bug = {
  name: 'a transaction takes its time when it begins, and commits later',
  breaks: 'ENG-WINDOW-1 and ENG-6, times at commit',
  rules: class extends Rules {
    override now(): number {
      return begunMs ?? super.now()
    }
  },
  catalog: inner => ({
    ...inner,
    stageCandidates: (lease, keys, call) => {
      begunMs = call.deadlineMs - OPERATION_TIMEOUT_MS
      return inner.stageCandidates(lease, keys, call).finally(() => {
        begunMs = undefined
      })
    }
  })
}

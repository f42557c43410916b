/** A step that many wait for and that succeeds once. */
import { describe, expect, it } from 'vitest'
import { Once } from '../src/once.js'

/** Attempts that the test settles, in the order in which they began. */
function attempts() {
  const begun: { readonly succeed: () => void; readonly fail: (error: Error) => void }[] = []
  const make = () => new Promise<void>((succeed, fail) => begun.push({ succeed, fail }))
  return { begun, make }
}

describe('a step that is made once', () => {
  it('is waited for by all who come while it is being made, and by nobody afterwards', async () => {
    const once = new Once()
    const { begun, make } = attempts()
    expect(once.isBegun).toBe(false)
    const waiting = [once.run(make), once.run(make)]
    expect([begun.length, once.isBegun, waiting[0]]).toEqual([1, true, waiting[1]])
    begun[0]?.succeed()
    await Promise.all(waiting)
    expect([once.run(make), begun.length, once.isBegun]).toEqual([undefined, 1, true])
  })

  it('is tried again after a failure, which those who waited are told', async () => {
    const once = new Once()
    const { begun, make } = attempts()
    const waiting = [once.run(make), once.run(make)]
    const failure = new Error('not now')
    begun[0]?.fail(failure)
    expect(await Promise.allSettled(waiting)).toEqual([
      { status: 'rejected', reason: failure },
      { status: 'rejected', reason: failure }
    ])
    expect(once.isBegun).toBe(false)
    const again = once.run(make)
    begun[1]?.succeed()
    await again
    expect([begun.length, once.run(make)]).toEqual([2, undefined])
  })

  it('is made anew once it was forgotten, whether it was made already or is being made, and the old attempt says nothing of the new', async () => {
    for (const end of ['succeed', 'fail'] as const) {
      const once = new Once()
      const { begun, make } = attempts()
      const old = once.run(make)
      once.forget()
      const fresh = once.run(make)
      begun[0]?.[end](new Error('the old one'))
      await old?.catch(() => {})
      expect([begun.length, once.run(make)]).toEqual([2, fresh])
      begun[1]?.succeed()
      await fresh
      expect(once.run(make)).toBeUndefined()
      once.forget()
      expect([once.isBegun, once.run(make) === undefined, begun.length]).toEqual([false, false, 3])
    }
  })
})

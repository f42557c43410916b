import { expect, test } from 'vitest'
import { int4, int4Array, type Statement } from '../src/index.js'
import { type Bench, bench, call, codeOf, describeWithServer, eventually, expectWorking } from './fixture.js'

const insert = (...values: number[]): Statement => ({
  text: 'INSERT INTO public.t SELECT * FROM unnest($1::int[]) AS v RETURNING v * 2',
  params: [int4Array(values)]
})

/** Puts the first value with BEGIN and the last with COMMIT; answers what the first one answered. */
function exchanged({ over }: Bench, first: number, last: number, meanwhile = () => {}, ms = 10_000): Promise<unknown> {
  return over.exchange(call(ms), {
    first: () => [insert(first)],
    decide: ([answer]) => {
      meanwhile()
      return { result: answer?.rows, last: [insert(last)] }
    }
  })
}

describeWithServer('a transaction in two messages', () => {
  test('does what comes first and what comes last, and answers what was decided between', async () => {
    const at = await bench()
    for (const n of [1, 2, 3]) expect(await exchanged(at, n, -n)).toEqual([[int4(2 * n)]])
    expect(await at.stored()).toEqual([-3, -2, -1, 1, 2, 3])
    const nothing = at.over.exchange(call(), { first: () => [insert(9)], decide: () => ({ result: 'done', last: [] }) })
    expect(await nothing).toBe('done')
    expect(await at.stored()).toContain(9)
    await expectWorking(at.over)
  })

  test.each([
    ['a first statement', [{ text: 'SELECT 1 / (SELECT count(*) FROM public.u)' }], []],
    ['one that is none', [{ text: 'SELEKT 1' }], []],
    ['a last statement', [], [{ text: 'SELECT 1 / (SELECT count(*) FROM public.u)' }, insert(3)]]
  ] as const)('of which %s is refused does nothing, and the session goes on', async (_, first, last) => {
    const { db, over, stored } = await bench()
    await db.query('CREATE TABLE public.u ()')
    const pids = new Set<number>()
    const asked = over.exchange(call(), {
      first: pid => {
        pids.add(pid)
        return [insert(1), ...first, insert(2)]
      },
      decide: () => ({ result: undefined, last })
    })
    await expect(asked).rejects.toMatchObject({ code: expect.stringMatching(/^(22012|42601)$/), severity: 'ERROR' })
    expect(await stored()).toEqual([])
    await over.use(call(), async session => {
      expect(pids).toEqual(new Set([session.pid]))
      // No transaction is open any more.
      expect(await session.rows('SELECT now() = statement_timestamp()')).toEqual([[true]])
    })
  })

  test('of which nothing good is decided is rolled back', async () => {
    const { over, stored } = await bench()
    const decide = () => {
      throw new Error('no')
    }
    await expect(over.exchange(call(), { first: () => [insert(1)], decide })).rejects.toThrow('no')
    expect(await stored()).toEqual([])
    await expectWorking(over)
  })

  // As when somebody cancels that very statement: what travels along must not be done outside of a transaction.
  test.each(['BEGIN ISOLATION', 'SELECT', 'INSERT INTO', 'COMMIT'])(
    'whose %s cannot be read does nothing',
    async text => {
      const at = await bench()
      await expectWorking(at.over)
      for (const n of [1, 2]) {
        at.wire.garble(text)
        await expect(exchanged(at, n, -n)).rejects.toThrow()
        expect(await at.stored()).toEqual([])
        await expectWorking(at.over)
        // What was prepared by then is not garbled twice.
        if (text !== 'BEGIN ISOLATION' && text !== 'COMMIT') break
      }
      expect(await exchanged(at, 3, -3)).toEqual([[int4(6)]])
      expect(await at.stored()).toEqual([-3, 3])
    }
  )

  test('that fails as it commits says why, and nothing is there', async () => {
    const at = await bench()
    await at.db.query('ALTER TABLE public.t ADD UNIQUE (v) DEFERRABLE INITIALLY DEFERRED')
    await expect(exchanged(at, 5, 5)).rejects.toMatchObject({ code: '23505' })
    expect(await at.stored()).toEqual([])
    await expectWorking(at.over)
  })

  test('whose last answer is lost has the result that it would have had', async () => {
    const at = await bench()
    expect(await exchanged(at, 1, 2, () => at.wire.resetAfter(0))).toEqual([[int4(2)]])
    expect(await at.stored()).toEqual([1, 2])
    await expectWorking(at.over)
  })

  test('whose last message is lost did not happen, and it is known', async () => {
    const at = await bench()
    await expectWorking(at.over)
    const asked = exchanged(at, 1, 2, () => at.wire.resetAtRequest())
    await expect(asked).rejects.toMatchObject({ code: 'transient', message: expect.stringContaining('rolled back') })
    expect(await at.stored()).toEqual([])
    await expectWorking(at.over)
  })

  test('whose answer nobody can be asked for is unknown at the deadline, and happened', async () => {
    const at = await bench()
    await expectWorking(at.over)
    expect(await codeOf(exchanged(at, 1, 2, () => at.wire.mute(), 1_500))).toBe('outcome-unknown')
    await eventually('committed', async () => (await at.stored()).length === 2)
    at.wire.heal()
    await expectWorking(at.over)
  })

  test('is begun anew where its session had died unnoticed, and not where it was new', async () => {
    const at = await bench()
    let begun = 0
    const asked = () =>
      at.over.exchange(call(), {
        first: () => {
          begun++
          if (begun === 1) at.wire.reset()
          return [insert(begun)]
        },
        decide: () => ({ result: begun, last: [] })
      })
    expect(await codeOf(asked())).toBe('transient')
    expect([begun, await at.stored()]).toEqual([1, []])
    await expectWorking(at.over)
    begun = 0
    expect(await asked()).toBe(2)
    expect(await at.stored()).toEqual([2])
  })

  test('that is cut at random is done or not, as was said, whole, and nothing hangs', async () => {
    const at = await bench({ poolMax: 4 })
    const outcomes = new Map<number, string>()
    const cut = setInterval(() => (Math.random() < 0.5 ? at.wire.reset() : at.wire.hangUp()), 25)
    const one = async (n: number) => {
      const asked = at.over.exchange(call(20_000), {
        first: () => [insert(n), { text: 'SELECT pg_sleep(0.003)' }],
        decide: () => ({ result: undefined, last: [insert(-n), { text: 'SELECT pg_sleep(0.002)' }] })
      })
      const code = () => codeOf(asked)
      outcomes.set(n, await asked.then(() => 'committed', code))
    }
    for (let batch = 0; batch < 10; batch++)
      await Promise.all(Array.from({ length: 10 }, (_, n) => one(batch * 10 + n + 1)))
    clearInterval(cut)
    at.wire.heal()
    const found = new Set(await at.stored())
    for (const [n, outcome] of outcomes) {
      expect(found.has(n)).toBe(found.has(-n))
      if (outcome === 'committed') expect(found.has(n)).toBe(true)
      else if (outcome !== 'outcome-unknown') expect([outcome, found.has(n)]).toEqual(['transient', false])
    }
    expect([...outcomes.values()].filter(outcome => outcome !== 'committed').length).toBeGreaterThan(0)
    await expectWorking(at.over)
  })
})

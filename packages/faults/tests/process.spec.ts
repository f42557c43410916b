// The levers of processes: each shows that it moved something.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { smallDisk, Victim, type VictimOptions } from '../src/index.js'

const script = fileURLToPath(new URL('./children/victim.mjs', import.meta.url))
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

function victim(args: readonly string[], options: Partial<VictimOptions> = {}): Victim {
  const made = new Victim({ script, args, limitMs: 20_000, ...options })
  onTestFinished(() => made.release())
  return made
}

describe('a victim', () => {
  it('waits at its phases, and goes on when it is told to', async () => {
    const process = victim(['phases'])
    expect(await process.reached()).toEqual({ at: 'first', before: [{ fact: 1 }] })
    process.go('a word')
    expect(await process.reached()).toEqual({ at: 'second', before: [{ word: 'a word' }] })
    process.go()
    await process.finish()
  })

  it('is killed at a phase, by the signal that no process can hear', async () => {
    const process = victim(['phases'])
    await process.reached()
    await process.kill()
    expect(await process.end).toEqual({ code: null, signal: 'SIGKILL' })
    await expect(process.next()).rejects.toThrow('signal SIGKILL')
  })

  it('that has ended by itself was not killed', async () => {
    const process = victim(['nothing'])
    await process.end
    await expect(process.kill()).rejects.toThrow('code 0')
  })

  it('that is stopped says nothing until it may go on', async () => {
    const process = victim(['ticks'])
    await process.next()
    await process.stop()
    await pause(50)
    process.rest()
    await pause(100)
    expect(process.rest()).toEqual([])
    process.continue()
    expect(await process.next()).toHaveProperty('tick')
    await process.kill()
  })

  it('that lives too long is killed, and whoever waits for it is told', async () => {
    const process = victim(['phases'], { limitMs: 1_500 })
    await process.reached()
    await expect(process.next()).rejects.toThrow('killed after 1500 ms')
  })
})

describe('what the kernel allows', () => {
  it('is so many descriptors', async () => {
    const process = victim(['descriptors'], { limits: { descriptors: 60 } })
    const said = await process.next()
    expect(said.code).toBe('EMFILE')
    expect(said.opened).toBeLessThan(60)
    await process.finish()
  })

  it('is so long a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'alkblobs-faults-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const process = victim(['write', join(folder, 'file')], { limits: { fileBlocks: 512 } })
    expect(await process.next()).toEqual({ code: 'EFBIG' })
    await process.finish()
    expect(statSync(join(folder, 'file')).size).toBeLessThanOrEqual(512 * 1_024)
  })
})

describe('a small disk', () => {
  it('is soon full, or says why there is none', async () => {
    const disk = smallDisk(1)
    if ('unavailable' in disk) {
      expect(disk.unavailable).toContain('tmpfs')
      expect(process.getuid?.()).not.toBe(0)
      return
    }
    onTestFinished(() => disk.release())
    const filler = victim(['write', join(disk.folder, 'file')])
    expect(await filler.next()).toEqual({ code: 'ENOSPC' })
    await filler.finish()
    disk.release()
    disk.release()
  })
})

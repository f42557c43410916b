import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { IMAGE } from '../src/choice.js'

const compose = readFileSync(new URL('../../../docker/compose.yaml', import.meta.url), 'utf8')
const valuesOf = (pattern: RegExp) => [...compose.matchAll(pattern)].map(match => match[1])

test('the images are pinned by digest, the one of PostgreSQL to what the tests start by themselves', () => {
  const images = valuesOf(/^\s+image: (\S+)$/gm)
  expect(images).toHaveLength(2)
  for (const image of images) expect(image).toMatch(/^[a-z0-9./-]+:[0-9][\w.-]*@sha256:[0-9a-f]{64}$/)
  expect(images[0]).toBe(IMAGE)
})

test('every port is published to the loopback address alone', () => {
  const ports = valuesOf(/^\s+- ([\d.:-]+)$/gm)
  expect(ports).toHaveLength(3)
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
})

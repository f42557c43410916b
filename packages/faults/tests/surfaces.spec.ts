// The list of surfaces against the types: whoever adds an operation to the contract or the facade has to say what covers it.
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { contestedSurfaces, FAULT_POINTS, surfacesAt } from '../src/index.js'
import { METHODS } from '../src/points.js'
import { contractOperations, facadeOperations } from './contract.js'

const { engines, surfaces } = contestedSurfaces

it('has a row for every operation of the contract, and none for what is no operation', () => {
  const operations = contractOperations().map(({ path }) => path)
  expect(operations.length).toBeGreaterThan(40)
  const points = new Set<string>(FAULT_POINTS)
  expect(operations.filter(path => surfaces[path] === undefined)).toEqual([])
  expect(operations.filter(path => !points.has(path))).toEqual([])
  expect([...points].filter(point => !operations.includes(point))).toEqual([])
})

it('gives every operation to the part that it is of; an optional method is a part of its own', () => {
  for (const { path, isOptional } of contractOperations()) {
    const part = isOptional ? path : path.slice(0, path.lastIndexOf('.'))
    expect(surfaces[path]).toEqual({ parts: [part], at: [path] })
  }
})

it('has a row for every operation of the facade, and none for what is no operation', () => {
  const operations = new Set(facadeOperations().map(name => `store.${name}`))
  const rows = Object.keys(surfaces).filter(name => name.startsWith('store.'))
  expect([...operations].filter(name => !rows.includes(name))).toEqual([])
  expect(rows.filter(name => !operations.has(name))).toEqual([])
})

it('names only points, operations and parts that there are', () => {
  const operations = facadeOperations()
  const parts = new Set<string>([...Object.keys(METHODS), ...contractOperations().map(({ path }) => path)])
  for (const [name, { at = [], during = [], parts: of }] of Object.entries(surfaces)) {
    expect([name, at.filter(point => !FAULT_POINTS.includes(point))]).toEqual([name, []])
    expect([name, during.filter(operation => !operations.includes(operation))]).toEqual([name, []])
    expect([name, of.filter(part => !parts.has(part))]).toEqual([name, []])
    expect(of.length).toBeGreaterThan(0)
    expect(at.length + during.length).toBeGreaterThan(0)
  }
})

it('knows every engine of this repository', () => {
  const folder = fileURLToPath(new URL('../..', import.meta.url))
  const packages = readdirSync(folder).flatMap(name => (name.startsWith('engine-') ? [name.slice(7)] : []))
  expect(Object.keys(engines).sort()).toEqual(packages.sort())
})

it('says what a fault strikes: a method, the operation under way, and its step', () => {
  expect(surfacesAt('catalog.publish', undefined)).toEqual(['catalog.publish'])
  expect(surfacesAt('catalog.publish', 'put')).toEqual(['catalog.publish', 'store.put', 'put.publish'])
  expect(surfacesAt('bodies.drop', 'sweep')).toEqual(['bodies.drop', 'store.sweep', 'sweep.drop'])
})

/** Values of every wrong kind, by name. */

class Instance {
  readonly field = 1
}

const trap = () => {
  throw new Error('trap')
}

/** An object of which nothing can be asked. Its own error may reach the caller: it is the caller's code that failed. */
export const throwingProxy = () =>
  new Proxy(
    {},
    { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap, getOwnPropertyDescriptor: trap, set: trap }
  )

export const NULLISH: Record<string, unknown> = { undefined: undefined, null: null }

export const PRIMITIVES: Record<string, unknown> = {
  null: null,
  zero: 0,
  'a number': 42,
  'a negative number': -1,
  'a fraction': 1.5,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  'a bigint': 10n,
  true: true,
  false: false,
  'the empty string': '',
  'a string': 'text',
  'a huge string': 'x'.repeat(2_000_000),
  'a symbol': Symbol('symbol')
}

export const OBJECTS: Record<string, unknown> = {
  'an empty object': {},
  'an object without prototype': Object.create(null),
  'an array': [1, 2],
  'an instance': new Instance(),
  'a function': () => {},
  'a class': Instance,
  'a Date': new Date(0),
  'a RegExp': /x/,
  'a Map': new Map([[1, 2]]),
  'a promise': Promise.resolve(1),
  'an Error': new Error('x'),
  'a String object': new String('text'),
  'a Number object': new Number(7)
}

const HEX = 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262'

export const BAD_KEYS: Record<string, string> = {
  'a path out of the pool': '../../../../etc/passwd',
  'a path with an algorithm': `blake3:${'../'.repeat(21)}x`,
  'an absolute path': '/etc/passwd',
  'a drive': 'C:\\windows',
  'upper case': `blake3:${HEX.toUpperCase()}`,
  '63 digits': `blake3:${HEX.slice(1)}`,
  '65 digits': `blake3:0${HEX}`,
  'another algorithm': `sha256:${HEX}`,
  'an unknown algorithm': `md5:${HEX}`,
  'no algorithm': HEX,
  'a leading space': ` blake3:${HEX}`,
  'a trailing space': `blake3:${HEX} `,
  'a trailing line break': `blake3:${HEX}\n`,
  'a trailing NUL': `blake3:${HEX}\0`,
  'a NUL inside': `blake3:${HEX.slice(0, 63)}\0`,
  SQL: `blake3:${HEX.slice(0, 40)}'; DROP TABLE a;--`,
  'percent signs': `blake3:${'%'.repeat(64)}`,
  'digits of another script': `blake3:${'٠'.repeat(64)}`
}

export const GOOD_KEY = `blake3:${HEX}`

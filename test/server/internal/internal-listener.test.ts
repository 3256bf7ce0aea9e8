import { describe, expect, it } from 'vitest'
import { bearerToken } from '../../../server/internal/internal-listener.ts'
import { isAcceptedHost } from '../../../server/internal/request-guard.ts'

describe('the Host of the internal listener', () => {
  it.each([
    '127.0.0.1',
    '127.0.0.1:3101',
    '10.1.2.3:3101',
    '[::1]:3101',
    '[::1]',
    'localhost:3101',
    'LOCALHOST',
    'sandbox:3101',
    'Sandbox',
  ])('may be %s', (host) => {
    expect(isAcceptedHost(host, ['sandbox'])).toBe(true)
  })

  it.each([
    undefined,
    '',
    'evil.example',
    'evil.example:3101',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'sandbox.evil.example',
    '127.0.0.1:x',
    '[evil.example]',
    '[127.0.0.1]',
    '::1',
  ])('may not be %s', (host) => {
    expect(isAcceptedHost(host, ['sandbox'])).toBe(false)
  })
})

describe('the bearer token', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer   a.b-c_d~e+f/g== ', 'a.b-c_d~e+f/g=='],
    ['Basic abc', undefined],
    ['Bearer', undefined],
    ['Bearer a b', undefined],
    ['Bearer a\u0000', undefined],
    [undefined, undefined],
  ])('of %j is %j', (header, token) => {
    expect(bearerToken(header)).toBe(token)
  })
})

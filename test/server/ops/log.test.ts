import { describe, expect, it } from 'vitest'
import { createLog, errorForLog, withoutSecrets } from '../../../server/ops/log.ts'

describe('what the log shows of an error', () => {
  it.each([
    ['GET /api/sb/72a7310c-82d2-49a3-8fe5-372db2357ffa', 'GET /api/sb/72a7310c…'],
    ['Authorization: Bearer owner-token, next', 'Authorization: Bearer … next'],
    ['got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_-nature here', 'got … here'],
    ['/api/files/public/x?jwt=abc.def&t=1', '/api/files/public/x?jwt=…&t=1'],
    ['{"password":"hunter2","email":"a@b"}', '{"password":"…","email":"a@b"}'],
    ['authToken=owner-token; Path=/', 'authToken=…; Path=/'],
    ['nothing secret', 'nothing secret'],
  ])('takes the secret out of %s', (text, expected) => {
    expect(withoutSecrets(text)).toBe(expected)
  })

  it('keeps the type, the code, the place and the cause', () => {
    const cause = Object.assign(new TypeError('token=abc'), { code: 'E_INNER' })
    const error = new RangeError('id 72a7310c-82d2-49a3-8fe5-372db2357ffa', { cause })
    expect(errorForLog(error)).toEqual({
      type: 'RangeError',
      message: 'id 72a7310c…',
      stack: expect.stringMatching(/^RangeError: id 72a7310c…\n {4}at .*log\.test\.ts/),
      cause: {
        type: 'TypeError',
        code: 'E_INNER',
        message: 'token=…',
        stack: expect.stringContaining('token=…'),
      },
    })
  })

  it('keeps the text that was no JSON out', () => {
    let thrown: unknown
    try {
      JSON.parse('<p>the body of a page</p>')
    } catch (error) {
      thrown = error
    }
    expect(errorForLog(thrown)).toEqual({
      type: 'SyntaxError',
      message: '…',
      stack: expect.stringMatching(/^ {4}at JSON\.parse .*log\.test\.ts/s),
    })
    expect(JSON.stringify(errorForLog(thrown))).not.toContain('<p>')
  })

  it('survives what is thrown without being an error', () => {
    expect(errorForLog('token=abc')).toEqual({ message: 'token=…' })
  })

  it('is one JSON object a line, errors included', () => {
    const lines: string[] = []
    createLog('info', { write: (line) => void lines.push(line) }).error(
      { err: new Error('Bearer abc') },
      'broken',
    )
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 50,
      msg: 'broken',
      err: { message: 'Bearer …' },
    })
  })
})

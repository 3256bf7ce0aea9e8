/** Such as `ECONNREFUSED`, from the error or its causes. */
export function systemCode(error: unknown): string | undefined {
  for (let cause: unknown = error, depth = 0; cause instanceof Error && depth < 4; depth++) {
    const code: unknown = 'code' in cause ? cause.code : undefined
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,50}$/.test(code)) return code
    // Node tries every address of a host name and collects the failures in an AggregateError.
    cause = cause instanceof AggregateError ? cause.errors[0] : cause.cause
  }
  return undefined
}

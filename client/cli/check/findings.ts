import type { Finding } from '../json-schemas.ts'

export type { Finding }

interface Detail {
  readonly variable?: string
  readonly mend?: string
}

/** The findings of one check, made as they come. */
export function findingsOf(check: Finding['check']) {
  const make =
    (status: Finding['status']) =>
    (message: string, { variable, mend }: Detail = {}): Finding => ({
      check,
      status,
      message,
      variable: variable ?? null,
      mend: mend ?? null,
    })
  return {
    ok: make('ok'),
    skipped: make('skipped'),
    warning: make('warning') as (message: string, detail: Required<Pick<Detail, 'mend'>> & Detail) => Finding,
    /** What is to be mended says how. */
    fault: make('fault') as (message: string, detail: Required<Pick<Detail, 'mend'>> & Detail) => Finding,
  }
}

import type { FailureReason, StashLink } from '../../../shared/link.ts'
import { stashPage } from '../../stash-page.ts'
import { type Command, connect } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { type Output, printable } from '../output.ts'
import { createProgressBar } from '../progress-bar.ts'
import { formatBytes, formatDuration, plural } from '../quantities.ts'

/** `blob-sandbox stash <page>` */
export function stash(pageId: string, options: { strict?: boolean }): Command {
  return async (context) => {
    const { output, signal, json } = context
    const client = await connect(context)
    const bar = createProgressBar(output.noteScreen)
    bar.update(0, undefined, 'Reading the page')
    let link: StashLink
    try {
      link = await stashPage(
        client,
        { pageId },
        {
          signal,
          onProgress: ({ files, mirrored, failed }) => {
            const failures = failed === 0 ? '' : `, ${failed} failed`
            bar.update(mirrored + failed, files, `${mirrored} of ${plural(files, 'file')}${failures}`)
          },
        },
      )
    } finally {
      bar.end()
    }
    if (json) output.json(link)
    else printLink(link, output)
    return options.strict && link.images.failed > 0 ? EXIT.partial : EXIT.ok
  }
}

const REASONS: Readonly<Record<FailureReason, string>> = {
  'not-found': 'the wiki has no such file, or hides it from this user',
  forbidden: 'this user may not read it',
  'too-large': 'over SANDBOX_MAX_IMAGE_BYTES',
  'store-full': 'no room in the store',
  timeout: 'it did not arrive in time',
  'bad-response': "the wiki's answer was not the file",
  unreachable: 'the wiki could not be reached',
}

/** The link is alone on the first line, for `| head -1`. */
function printLink(link: StashLink, { line, paint }: Output): void {
  const { mirrored, failed } = link.images
  const title = link.title === '' ? 'untitled page' : `“${printable(link.title)}”`
  const saved = link.updatedAt === null ? '' : `, saved by the wiki at ${link.updatedAt.toISOString()}`
  line(paint('bold', link.uri))
  line(`${title}: ${formatBytes(link.size)}${saved}`)
  line(
    `expires at ${link.expiresAt.toISOString()} (in ${formatDuration(link.expiresAt.getTime() - Date.now())})`,
  )
  line(`sha256 ${link.sha256}`)
  line(
    `${paint('green', `${plural(mirrored, 'file')} mirrored`)}, ${failed === 0 ? 'none failed' : paint('yellow', `${failed} failed:`)}`,
  )
  for (const { attachmentId, name, reason } of link.failures) {
    line(`  ${printable(name) || attachmentId}: ${reason} (${REASONS[reason]})`)
  }
  const unlisted = failed - link.failures.length
  if (unlisted > 0) line(`  and ${unlisted} more`)
}

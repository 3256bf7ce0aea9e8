import { setTimeout } from 'node:timers/promises'
import Table from 'cli-table3'
import type { SandboxStats } from '../../../shared/stats.ts'
import { type Command, type CommandContext, connect } from '../context.ts'
import { EXIT, toCommandError } from '../exit-codes.ts'
import { LiveRegion } from '../live-region.ts'
import type { Paint } from '../output.ts'
import { formatBytes, formatCount, formatDuration } from '../quantities.ts'

/** `blob-sandbox stats`; with `watchSeconds` repeated until Ctrl-C. */
export function stats(watchSeconds: number | undefined): Command {
  return async (context) => {
    const client = await connect(context)
    const ask = () => client.stats.query(undefined, { signal: context.signal })
    if (watchSeconds === undefined) {
      const now = await ask()
      if (context.json) context.output.json(now)
      else context.output.line(statsTable(now, context.output.paint))
      return EXIT.ok
    }
    return await watch(ask, watchSeconds * 1000, context)
  }
}

async function watch(
  ask: () => Promise<SandboxStats>,
  intervalMs: number,
  { output, json, signal }: CommandContext,
): Promise<never> {
  // A failure of the first request ends the command: it is probably a mistake of the configuration.
  let latest = await ask()
  const region = json || output.screen === undefined ? undefined : new LiveRegion(output.screen)
  const show = (failure?: string) => {
    const at = new Date().toISOString()
    if (region !== undefined) {
      const state =
        failure === undefined
          ? `${at}, every ${intervalMs / 1000} s; Ctrl-C ends`
          : output.paint('red', failure)
      const lines = [...statsTable(latest, output.paint).split('\n'), state]
      region.render(() => lines)
    } else if (failure !== undefined) output.note(`${at} ${failure}`)
    else if (json) output.json(latest)
    else output.line(`${at} ${statsLine(latest)}`)
  }
  try {
    show()
    for (;;) {
      await setTimeout(intervalMs, undefined, { signal })
      try {
        latest = await ask()
        show()
      } catch (error) {
        // A service that restarts comes back; other errors stay.
        const { exitCode, message } = toCommandError(error)
        if (signal.aborted || exitCode !== EXIT.unreachable) throw error
        show(`${message} Trying again.`)
      }
    }
  } finally {
    region?.end('keep')
  }
}

/** The most important counters on one line, for a log. */
function statsLine({ store, stashes, deliveries }: SandboxStats): string {
  return [
    `held=${store.heldBytes}`,
    `reserved=${store.reservedBytes}`,
    `free=${store.freeBytes}`,
    `stashes=${store.stashes}`,
    `blobs=${store.blobs}`,
    `running=${stashes.running}`,
    `stored=${stashes.stored}`,
    `refused=${stashes.refused}`,
    `failed=${stashes.failed}`,
    `delivered=${deliveries.completed}`,
    `deliveredBytes=${deliveries.bytes}`,
  ].join(' ')
}

/** All counters as a table. */
function statsTable(stats: SandboxStats, paint: Paint): string {
  const { store, stashes, deliveries } = stats
  const share = (bytes: number) => `${((bytes / store.maxTotalBytes) * 100).toFixed(1)} %`
  const table = new Table({
    colAligns: ['left', 'right', 'right'],
    // Without lines between the rows.
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
    // No colours of its own.
    style: { head: [], border: [] },
  })
  const group = (title: string, more = '') => table.push([paint('bold', title), '', more])
  const row = (term: string, value: string, more = '') => table.push([`  ${term}`, value, more])

  group('Store', `since ${stats.startedAt.toISOString()}`)
  row('held', formatBytes(store.heldBytes), share(store.heldBytes))
  row('reserved', formatBytes(store.reservedBytes), share(store.reservedBytes))
  row('free', formatBytes(store.freeBytes), share(store.freeBytes))
  row('evictable', formatBytes(store.evictableBytes), share(store.evictableBytes))
  row('cap', formatBytes(store.maxTotalBytes), `a user: ${formatBytes(store.maxUserBytes)}`)
  row(
    'stashes, blobs',
    `${formatCount(store.stashes)}, ${formatCount(store.blobs)}`,
    store.nextExpiry === null
      ? ''
      : `next expires in ${formatDuration(store.nextExpiry.getTime() - Date.now())}`,
  )
  row('expired', formatCount(store.stashesExpired))
  row('evicted', formatCount(store.stashesEvicted))
  row('dropped', formatCount(store.stashesDropped))
  group('Stashes')
  row('running', formatCount(stashes.running))
  row('stored', formatCount(stashes.stored))
  row('refused', formatCount(stashes.refused))
  row('failed', formatCount(stashes.failed))
  row('aborted', formatCount(stashes.aborted))
  row('files mirrored', formatCount(stashes.filesMirrored))
  for (const [reason, count] of Object.entries(stashes.filesFailed)) {
    if (count > 0) row('files failed', formatCount(count), paint('yellow', reason))
  }
  group('Deliveries')
  row('whole', formatCount(deliveries.completed), formatBytes(deliveries.bytes))
  row('ended early', formatCount(deliveries.aborted))
  row('open now', formatCount(store.openResponses))
  for (const [status, count] of Object.entries(deliveries.byStatus)) {
    if (count > 0) row(`answered ${status}`, formatCount(count))
  }
  return table.toString()
}

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startNginx } from '../fixtures/nginx.ts'
import { type FieldList, type HeldBlob, makeBytes } from './contestants/contract.ts'
import { start } from './processes.ts'

export interface StaticNginx {
  readonly origin: string
  /** User and system time so far, microseconds; in steps of 10 ms. */
  cpuMicros(): number
  end(): Promise<void>
}

/** Fields that nginx sends by itself: the same (`Accept-Ranges`, `Content-Length`) or its own (`ETag`). */
const OF_ITS_OWN = new Set(['accept-ranges', 'content-length', 'content-type', 'etag'])

/**
 * Starts nginx with sendfile over files in the scratch folder. It answers with the service's fields, but for an ETag of
 * its own, `Server` and `Last-Modified`.
 */
export async function startStaticNginx(
  scratchFolder: string,
  held: readonly HeldBlob[],
): Promise<StaticNginx> {
  const root = join(scratchFolder, 'nginx-root')
  chmodSync(scratchFolder, 0o755)
  mkdirSync(join(root, 'api', 'sb'), { recursive: true })
  for (const blob of held) writeFileSync(join(root, blob.path), makeBytes(blob))
  const nginx = await startNginx({
    configuration: { text: siteOf(root, held) },
    directives: 'sendfile on; tcp_nopush on; keepalive_requests 1000000000;',
    start: (command, args, options) => start(command, args, options, 'measured'),
  })
  return {
    origin: `http://127.0.0.1:${nginx.port}`,
    cpuMicros: () => cpuMicrosOf(nginx.pid),
    async end() {
      await nginx.stop()
    },
  }
}

function siteOf(root: string, held: readonly HeldBlob[]): string {
  const locations = held.map(({ path, fields }) => `location = ${path} { ${fieldsIn(fields)} }`)
  return `server { listen 80; root ${root}; types { } ${locations.join('\n')} }`
}

function fieldsIn(fields: FieldList): string {
  const lines: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = `'${(fields[i + 1] ?? '').replace(/['\\$]/g, '\\$&')}'`
    if (name.toLowerCase() === 'content-type') lines.push(`default_type ${value};`)
    else if (!OF_ITS_OWN.has(name.toLowerCase())) lines.push(`add_header ${name} ${value};`)
  }
  return lines.join('\n      ')
}

/** proc(5): fields 14 and 15 of `stat`, in clock ticks, of which Linux shows 100 a second. */
function cpuMicrosOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

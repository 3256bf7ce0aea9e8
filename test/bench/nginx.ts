import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../fixtures/free-port.ts'
import { type FieldList, type HeldBlob, makeBytes } from './contestants/contract.ts'
import { end, start } from './processes.ts'

export interface Nginx {
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
export async function startNginx(
  program: string,
  scratchFolder: string,
  held: readonly HeldBlob[],
): Promise<Nginx> {
  const folder = join(scratchFolder, 'nginx')
  const root = join(folder, 'root')
  chmodSync(scratchFolder, 0o755)
  mkdirSync(join(root, 'api', 'sb'), { recursive: true })
  for (const blob of held) writeFileSync(join(root, blob.path), makeBytes(blob))
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, root, port, held))
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error')]
  const child = start(program, args, { stdio: 'ignore' }, 'measured')
  await answering(port, () => child.exitCode === null)
  return {
    origin: `http://127.0.0.1:${port}`,
    cpuMicros: () => cpuMicrosOf(child.pid ?? 0),
    end: () => end(child),
  }
}

/** One process, which is the worker: its CPU time is the whole of nginx's. */
function configuration(folder: string, root: string, port: number, held: readonly HeldBlob[]): string {
  const locations = held.map(
    (blob) => `
    location = ${blob.path} {
      ${fieldsIn(blob.fields)}
    }`,
  )
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
master_process off;
pid ${folder}/pid;
events { worker_connections 1024; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  etag on;
  types { }
  server {
    listen 127.0.0.1:${port};
    root ${root};
    ${locations.join('')}
  }
}
`
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

async function answering(port: number, alive: () => boolean): Promise<void> {
  while (alive()) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (connected) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('nginx did not start')
}

/** proc(5): fields 14 and 15 of `stat`, in clock ticks, of which Linux shows 100 a second. */
function cpuMicrosOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

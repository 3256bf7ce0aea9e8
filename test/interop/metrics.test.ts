import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { fetchBlob } from '../fixtures/http-client.ts'
import { MEMBER_TOKEN } from '../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

let service: TestSandbox
let text: string

/** Two stashes (one dropped), a refusal, a delivery, a 304, a miss, and an eviction's and an expiry's absence. */
beforeAll(async () => {
  service = await startTestSandbox()
  const { wiki, sandbox, clientOf } = service
  const client = clientOf()
  const all = await client.stash.mutate({ pageId: wiki.page('all').id })
  const empty = await client.stash.mutate({ pageId: wiki.page('empty').id })
  await expect(clientOf(MEMBER_TOKEN).stash.mutate({ pageId: wiki.page('restr').id })).rejects.toThrow()
  await client.drop.mutate({ uri: all.uri })
  const { headers } = await fetchBlob(empty.uri)
  await fetchBlob(empty.uri, { 'if-none-match': headers.get('etag') ?? '' })
  await fetchBlob(all.uri)
  await vi.waitUntil(async () => (await sandbox.stats()).deliveries.completed === 1)
  text = await metrics()
})

afterAll(() => service.stop())

async function metrics(): Promise<string> {
  const response = await fetch(`${service.sandbox.internalOrigin}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  return response.text()
}

/** The samples of the service's own metrics whose line begins so. */
function samples(prefix: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(`blob_sandbox_${prefix}`))
}

describe('/metrics', () => {
  it('passes `promtool check metrics` without a word', async () => {
    const promtool = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
    let said = ''
    promtool.stdout.on('data', (chunk) => {
      said += chunk
    })
    promtool.stderr.on('data', (chunk) => {
      said += chunk
    })
    promtool.stdin.end(text)
    const [code] = await once(promtool, 'close')
    expect({ code, said }).toEqual({ code: 0, said: '' })
  })

  it('tells what the store holds', () => {
    expect(samples('store_')).toEqual([
      'blob_sandbox_store_max_bytes 134217728',
      'blob_sandbox_store_held_bytes 27',
      'blob_sandbox_store_reserved_bytes 0',
      'blob_sandbox_store_evictable_bytes 0',
      'blob_sandbox_store_held_blobs 1',
      'blob_sandbox_store_reserved_blobs 0',
      'blob_sandbox_store_stashes 1',
    ])
    expect(samples('open_responses ')).toEqual(['blob_sandbox_open_responses 0'])
    expect(samples('running_stashes ')).toEqual(['blob_sandbox_running_stashes 0'])
  })

  it('counts stashes by outcome and files by outcome and reason', () => {
    expect(samples('stashes_total')).toEqual([
      'blob_sandbox_stashes_total{outcome="stored"} 2',
      'blob_sandbox_stashes_total{outcome="refused"} 1',
      'blob_sandbox_stashes_total{outcome="failed"} 0',
      'blob_sandbox_stashes_total{outcome="aborted"} 0',
    ])
    expect(samples('files_total')).toEqual([
      'blob_sandbox_files_total{outcome="mirrored",reason=""} 31',
      'blob_sandbox_files_total{outcome="failed",reason="not-found"} 1',
      'blob_sandbox_files_total{outcome="failed",reason="forbidden"} 0',
      'blob_sandbox_files_total{outcome="failed",reason="too-large"} 1',
      'blob_sandbox_files_total{outcome="failed",reason="store-full"} 0',
      'blob_sandbox_files_total{outcome="failed",reason="timeout"} 0',
      'blob_sandbox_files_total{outcome="failed",reason="bad-response"} 0',
      'blob_sandbox_files_total{outcome="failed",reason="unreachable"} 0',
    ])
  })

  it('counts deliveries by status, their bytes, and what became of stashes', () => {
    expect(samples('deliveries_total')).toEqual([
      'blob_sandbox_deliveries_total{status="200"} 1',
      'blob_sandbox_deliveries_total{status="304"} 1',
      'blob_sandbox_deliveries_total{status="404"} 1',
    ])
    expect(samples('deliveries_ended_total')).toEqual([
      'blob_sandbox_deliveries_ended_total{outcome="completed"} 1',
      'blob_sandbox_deliveries_ended_total{outcome="aborted"} 0',
    ])
    expect(samples('delivered_bytes_total')).toEqual(['blob_sandbox_delivered_bytes_total 27'])
    expect(['evictions', 'expiries', 'drops'].flatMap(samples)).toEqual([
      'blob_sandbox_evictions_total 0',
      'blob_sandbox_expiries_total 0',
      'blob_sandbox_drops_total 1',
    ])
  })

  it('gives the durations of stashes and of the calls to the wiki as histograms', () => {
    expect(samples('stash_duration_seconds_count')).toEqual([
      'blob_sandbox_stash_duration_seconds_count{outcome="stored"} 2',
      'blob_sandbox_stash_duration_seconds_count{outcome="refused"} 1',
    ])
    expect(samples('stash_duration_seconds_bucket{le="45",')).toEqual([
      'blob_sandbox_stash_duration_seconds_bucket{le="45",outcome="stored"} 2',
      'blob_sandbox_stash_duration_seconds_bucket{le="45",outcome="refused"} 1',
    ])
    expect(samples('wiki_duration_seconds_count').sort()).toEqual([
      'blob_sandbox_wiki_duration_seconds_count{call="file",outcome="not-found"} 1',
      'blob_sandbox_wiki_duration_seconds_count{call="file",outcome="ok"} 32',
      'blob_sandbox_wiki_duration_seconds_count{call="me",outcome="ok"} 2',
      'blob_sandbox_wiki_duration_seconds_count{call="page",outcome="forbidden"} 1',
      'blob_sandbox_wiki_duration_seconds_count{call="page",outcome="ok"} 2',
    ])
  })

  it("has the process's own metrics, and no id or user anywhere", () => {
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m)
    const labels = samples('').flatMap((line) => [...line.matchAll(/[{,](\w+)="([^"]*)"/g)])
    expect([...new Set(labels.map(([, name]) => name))].sort()).toEqual([
      'call',
      'le',
      'outcome',
      'reason',
      'status',
    ])
    expect(labels.filter(([, , value]) => /[0-9a-f]{8}/.test(value ?? ''))).toEqual([])
  })

  it('counts nothing twice however often it is asked for', async () => {
    const own = (all: string) => all.split('\n').filter((line) => line.startsWith('blob_sandbox_'))
    expect(own(await metrics())).toEqual(own(await metrics()))
  })
})

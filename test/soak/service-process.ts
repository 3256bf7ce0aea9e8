import { fileURLToPath } from 'node:url'
import { Channel } from '../bench/channel.ts'
import { start } from '../bench/processes.ts'
import type { Gauges, SoakedServiceContract } from './service-contract.ts'

export interface SoakedService {
  readonly channel: Channel<SoakedServiceContract>
  readonly publicOrigin: string
  readonly internalOrigin: string
}

/** Starts the service in a child process on loopback, with these variables beside the defaults. */
export async function startService(environment: Readonly<Record<string, string>>): Promise<SoakedService> {
  const child = start(
    process.execPath,
    ['--import', 'tsx', fileURLToPath(new URL('service.ts', import.meta.url))],
    {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: {
        PATH: process.env.PATH,
        SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
        SANDBOX_HOST: '127.0.0.1',
        SANDBOX_PORT: '0',
        SANDBOX_INTERNAL_PORT: '0',
        ...environment,
      },
    },
  )
  const channel = new Channel<SoakedServiceContract>(child)
  const origins = await channel.ask('origins', null)
  return { channel, publicOrigin: origins.public, internalOrigin: origins.internal }
}

/** Waits until nothing is held, reserved, open or running; gives what was left when the time was over. */
export async function gaugesAtRest(service: SoakedService, withinMs: number): Promise<Gauges> {
  const end = performance.now() + withinMs
  for (;;) {
    const gauges = await service.channel.ask('gauges', null)
    if (Object.values(gauges).every((value) => value === 0) || performance.now() > end) return gauges
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

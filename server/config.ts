/** The service's configuration, checked; every size in bytes, every time in milliseconds. Sources: DESIGN.md. */
export interface Config {
  /** Base of every link, without a trailing slash. */
  publicUrl: string
  host: string
  port: number
  internalHost: string
  internalPort: number
  /** Further `Host` names that the internal listener accepts, lower case. */
  internalHosts: readonly string[]
  /** The wiki's API without a trailing slash, such as `http://127.0.0.1:3000/api`. */
  docmostApiUrl: string
  /** The wiki's public origin, such as `https://wiki.example.org`. */
  docmostAppOrigin: string
  ttlMs: number
  maxBytes: number
  maxImageBytes: number
  maxTotalBytes: number
  maxUserBytes: number
  fetchConcurrency: number
  fetchTimeoutMs: number
  stashTimeoutMs: number
  logLevel: string
}

/**
 * Reads `.env` of the working directory, when there is one, into `process.env`; what is set already stays.
 * @throws {Error} when it is there and cannot be read.
 */
export function loadEnvFile(): void {
  try {
    process.loadEnvFile()
  } catch (error) {
    const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'ENOENT') throw new Error(`.env cannot be read (${String(code)})`, { cause: error })
  }
}

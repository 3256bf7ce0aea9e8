/** Where the log's lines go. Apart from `log.ts`, so that the types for embedders name no library. */
export interface LogDestination {
  /** @param lines one or several whole lines. */
  write(lines: string): void
}

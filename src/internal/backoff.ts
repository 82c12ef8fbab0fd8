/** Full jitter: uniform between 0 and the exponential bound, so that retries of many callers spread out. */
export function backoffMs(attempt: number, { baseMs, maxMs }: BackoffSettings, random: () => number): number {
  return random() * Math.min(maxMs, baseMs * 2 ** attempt);
}

/** Bounds of {@link backoffMs}. */
export interface BackoffSettings {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * Does what may be of no use any more: a client throws when it is told to pause a partition that it has lost, or while it
 * is starting anew, and the next assignment begins without pauses.
 */
export function attempt(work: () => unknown): void {
  try {
    work();
  } catch {
    // See above.
  }
}

/** A key whose next event the broker refuses for good; its events wait until somebody decides. */
export interface ParkedKey {
  readonly topic: string;
  readonly key: string;
  /** The refused event. */
  readonly eventId: string;
  /** Why, as the publisher told: the error's message, cut short. */
  readonly reason: string;
  readonly parkedAt: Date;
  /** How many events wait, the refused one among them. */
  readonly held: number;
}

const maxReasonLength = 500;

/** The text of an error that is kept with the key. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll("\0", "").toWellFormed().slice(0, maxReasonLength);
}

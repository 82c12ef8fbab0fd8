/**
 * What became of one event at one consumer. Every one of them is final for the delivery: acknowledge it.
 *
 * - `executed`: its handler ran and committed; also a type nobody handles, recorded so.
 * - `duplicate`: it had been recorded before; nothing ran.
 * - `stale`: a newer version of its aggregate had been applied; recorded and skipped.
 * - `parked`: stored, to be applied in order later: its key is parked, or an earlier version is missing.
 * - `dead-lettered`: stored with its error for an operator, recorded in the same transaction.
 */
export type EventOutcome = "executed" | "duplicate" | "stale" | "parked" | "dead-lettered";

/**
 * @typedef {object} BenchEvent
 * @property {string} eventId a UUID
 * @property {string} key what orders it
 * @property {{ amount: string, note: string }} payload some 150 bytes of JSON
 */

/** @typedef {{ eventId: string, key: string }} Delivered */

/**
 * An outbox under measurement, on a database of its own.
 * @typedef {object} Contender
 * @property {(events: readonly BenchEvent[]) => Promise<void>} enqueue commits them in one transaction
 * @property {(deliver: (events: readonly Delivered[]) => Promise<void>) => Promise<() => Promise<void>>} start
 *   hands events to `deliver`, one call as the contender makes them; resolves to its stop
 * @property {() => Promise<{ waiting: number, abandoned: number }>} left what was not handed over, and what was given up
 * @property {() => Promise<void>} close ends its connections
 */

/** How long a look at an empty queue waits for the next, where the contender leaves that to us. */
export const idleMs = 10;

import type { Json } from "./canonical-json.ts";

/**
 * Names of the headers that every message carries (R-DIST-IDEM-1), as they are on the wire. `saga_id` and `step_name`
 * are there where a saga is, `aggregate_version` where the producer gave one, `traceparent` where a trace was active.
 */
export const eventHeaders = {
  eventId: "event_id",
  type: "event_type",
  sagaId: "saga_id",
  stepName: "step_name",
  aggregateVersion: "aggregate_version",
  traceparent: "traceparent",
} as const;

/** An event as a producer hands it to `enqueue`. */
export interface OutgoingEvent {
  /** What happened, such as `order.created`. */
  readonly type: string;
  /** Events of one key keep their order; mostly the aggregate's id. */
  readonly key: string;
  /** JSON, or bytes sent as they are. */
  readonly payload: Json | Uint8Array;
  /** @defaultValue the part of `type` before its first dot: `order` */
  readonly topic?: string;
  /** The aggregate's version after this event, for consumers that guard with `applyIfNewer`. */
  readonly aggregateVersion?: number;
  readonly sagaId?: string;
  readonly stepName?: string;
  /** Further headers; the names of {@link eventHeaders} are taken. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An event on its way: what a relay publishes and a consumer receives. */
export interface EventMessage {
  /** UUIDv7, drawn once by `enqueue`; a re-send carries the same. */
  readonly eventId: string;
  readonly type: string;
  readonly topic: string;
  readonly key: string;
  readonly payload: Uint8Array;
  readonly aggregateVersion?: number;
  readonly sagaId?: string;
  readonly stepName?: string;
  /** All other headers, `traceparent` among them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What became of one message of a publish. */
export type Published =
  | { readonly published: "acknowledged" }
  /** Will never be accepted (too large, unauthorised, no such topic): its key is parked and reported. */
  | { readonly published: "refused"; readonly error: unknown }
  /** The broker or the way to it failed; the same message may be sent again. */
  | { readonly published: "failed"; readonly error: unknown };

/**
 * The port of the sending side. A publisher sends the messages so that, within one key, a later one is never accepted
 * ahead of an earlier one, and resolves when each is acknowledged by all in-sync replicas, refused, or failed: one
 * result for one message, in order. It never rejects for a single message.
 */
export interface Publisher extends AsyncDisposable {
  publish(messages: readonly EventMessage[], signal?: AbortSignal): Promise<readonly Published[]>;
}

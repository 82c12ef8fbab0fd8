/** A webhook's request before it is trusted. */
export interface SignedRequest {
  /** A header's value by its lower-case name, or `undefined`. */
  header(name: string): string | undefined;
  /** The bytes as they came: a parsed and printed body has another signature. */
  readonly body: Uint8Array;
  /** Seconds since 1970. */
  readonly nowSeconds: number;
}

/** What a verified request tells about itself. */
export interface Verified {
  /** The provider's id of the event, where it comes in the headers; the same in every delivery of it. */
  readonly eventId?: string;
}

/** Decides whether a request comes from the provider. Write your own for schemes that are not here. */
export interface WebhookVerifier {
  /** Whose ids they are: part of the events' identity, so two providers never share one. Never renamed. */
  readonly source: string;
  /** `undefined` for whatever is wrong: the answer must not tell which part. */
  verify(request: SignedRequest): Verified | undefined | Promise<Verified | undefined>;
}

/** Settings of the signature schemes. */
export interface SignatureOptions {
  /**
   * How far the time of signing may lie from now, in seconds, in both directions. It bounds for how long a captured
   * request can be sent again; an event that is sent again takes effect once all the same.
   * @defaultValue 300
   */
  readonly toleranceSeconds?: number;
}

/** @returns the whole seconds of a header that holds nothing else */
export function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

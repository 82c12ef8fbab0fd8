import type { InboxSettings } from "../inbox/settings.ts";
import { harmless } from "../internal/harmless.ts";
import { checkFunction, checkInteger, checkNames, invalid } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import type { WebhookVerifier } from "./verifier.ts";

/** Settings of {@link webhook}. */
export interface WebhookOptions<Tx, E> {
  readonly database: PostgresDatabase<Tx>;
  /** Who consumes; see the inbox. */
  readonly consumer: string;
  /** Checks the signature over the bytes as they came: `standardWebhooks(secret)`, `stripe(secret)`, or your own. */
  readonly verify: WebhookVerifier;
  /**
   * The provider's id of the event, the same in every delivery of it.
   * @defaultValue what the verifier reads from the headers; else the body's `id`
   */
  readonly eventId?: (event: E) => string;
  /**
   * What happened, for dead letters and logs.
   * @defaultValue the body's `type`, else `webhook`
   */
  readonly type?: (event: E) => string;
  /** @defaultValue JSON */
  readonly parse?: (body: Uint8Array) => E;
  /**
   * Failed deliveries after which an event becomes a dead letter and is acknowledged.
   * @defaultValue none: the provider's own retries and its list of failures do that work
   */
  readonly deadLetterAfter?: number;
  /**
   * The largest body that is read.
   * @defaultValue 1_048_576
   */
  readonly maxBodyBytes?: number;
  /**
   * Sent with 503 while the database is away.
   * @defaultValue 30
   */
  readonly retryAfterSeconds?: number;
  /**
   * Bounds one run of the handler. Keep it below the time that the provider waits for the answer.
   * @defaultValue 10_000
   */
  readonly handlerTimeoutMs?: number;
  /** See the inbox. */
  readonly idleTimeoutMs?: number;
  /** See the inbox. */
  readonly lockTimeoutMs?: number;
  /**
   * How long a delivery waits for the database before it is answered with 503.
   * @defaultValue 3_000
   */
  readonly giveUpAfterMs?: number;
  /** Told what the provider is not: a handler's error, or the database's. By default a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

/** {@link WebhookOptions}, checked. */
export interface WebhookSettings<E> {
  readonly verify: WebhookVerifier;
  readonly eventId: ((event: E) => string) | undefined;
  readonly type: (event: E) => string;
  readonly parse: (body: Uint8Array) => E;
  readonly maxBodyBytes: number;
  readonly retryAfterSeconds: number;
  readonly onError: (error: unknown) => void;
  readonly inbox: InboxSettings;
}

const optionNames = [
  "database",
  "consumer",
  "verify",
  "eventId",
  "type",
  "parse",
  "deadLetterAfter",
  "maxBodyBytes",
  "retryAfterSeconds",
  "handlerTimeoutMs",
  "idleTimeoutMs",
  "lockTimeoutMs",
  "giveUpAfterMs",
  "onError",
] as const;

/** Practically never: the provider stops long before. */
const neverDeadLetter = 1_000_000;

/** @throws IdemkitError `option_invalid`. */
export function webhookSettings<Tx, E>(options: WebhookOptions<Tx, E>): WebhookSettings<E> {
  checkNames("webhook", options, optionNames);
  const { verify, eventId, type = typeOf, parse = parseJson, onError = warn } = options;
  if (typeof verify?.verify !== "function" || typeof verify.source !== "string" || verify.source === "") {
    throw invalid(
      "verify",
      "must be a verifier, such as standardWebhooks(secret): a webhook without one is anybody's",
    );
  }
  for (const [name, given] of Object.entries({ eventId, type, parse, onError })) {
    if (given !== undefined) checkFunction(name, given);
  }
  return {
    verify,
    eventId,
    type,
    parse: parse as (body: Uint8Array) => E,
    maxBodyBytes: checkInteger("maxBodyBytes", options.maxBodyBytes ?? 1_048_576, 1, 100_000_000),
    retryAfterSeconds: checkInteger("retryAfterSeconds", options.retryAfterSeconds ?? 30, 1, 86_400),
    onError: harmless(onError),
    inbox: inboxSettingsOf(options),
  };
}

function inboxSettingsOf<Tx, E>(options: WebhookOptions<Tx, E>): InboxSettings {
  const { consumer, deadLetterAfter = neverDeadLetter, idleTimeoutMs, lockTimeoutMs } = options;
  return {
    consumer,
    retry: { attempts: checkInteger("deadLetterAfter", deadLetterAfter, 1, neverDeadLetter), perDelivery: 1 },
    handlerTimeoutMs: options.handlerTimeoutMs ?? 10_000,
    giveUpAfterMs: options.giveUpAfterMs ?? 3000,
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    ...(lockTimeoutMs === undefined ? {} : { lockTimeoutMs }),
  };
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function parseJson(body: Uint8Array): unknown {
  return JSON.parse(decoder.decode(body)) as unknown;
}

function typeOf(event: unknown): string {
  const type: unknown =
    typeof event === "object" && event !== null && "type" in event ? event.type : undefined;
  return typeof type === "string" && type !== "" ? type : "webhook";
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

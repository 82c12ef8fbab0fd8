import { IdemkitError } from "../errors.ts";
import { checkInteger, checkNames } from "../internal/options.ts";
import { newKey } from "./new-key.ts";
import { memoryKeys } from "./key-store.ts";
import type { KeyEntry, KeyStore } from "./key-store.ts";
import { prepared } from "./prepared-request.ts";
import type { FetchLike, PreparedRequest, ResponseLike } from "./prepared-request.ts";
import { send } from "./send.ts";
import type { Sent, SendSettings } from "./send.ts";

/** Settings of {@link idempotentFetch}. */
export interface IdempotentFetchOptions<R extends ResponseLike = Response> {
  /**
   * What sends a request: anything of the form of `fetch`.
   * @defaultValue the global `fetch`
   */
  readonly fetch?: FetchLike<R>;
  /**
   * Where the keys of named operations are kept. Give `webStorageKeys(localStorage)` or `fileKeys(folder)` to have a retry
   * after a reload or a restart go out under the same key.
   * @defaultValue `memoryKeys()`
   */
  readonly keys?: KeyStore;
  /**
   * Bounds one try.
   * @defaultValue 10_000
   */
  readonly tryTimeoutMs?: number;
  /**
   * Bounds a call with all its tries and pauses.
   * @defaultValue 60_000
   */
  readonly totalTimeoutMs?: number;
  /**
   * The pause before the first retry is uniform between 0 and this; the bound doubles with each retry. A `Retry-After` is
   * waited in full, and the jitter comes on top.
   * @defaultValue 200
   */
  readonly backoffBaseMs?: number;
  /** @defaultValue 10_000 */
  readonly backoffMaxMs?: number;
  /**
   * The header that carries the key.
   * @defaultValue "Idempotency-Key"
   */
  readonly header?: string;
  /** Uniform in [0, 1); for tests. */
  readonly random?: () => number;
}

/** What names the operation of one call, beside the settings of `fetch`. */
export interface OperationInit extends RequestInit {
  /**
   * The business operation, such as `pay:order-17`. Its key is made once and kept in the store until a final answer, so that
   * every later call with the same name repeats the operation instead of doing it again.
   */
  readonly operation?: string;
  /** A key that the caller keeps itself. */
  readonly key?: string;
}

/** A `fetch` that may be repeated; see {@link idempotentFetch}. */
export interface IdempotentFetch<R> {
  /**
   * Sends the request until it has a final answer or the time is up. Resolves to the last response; rejects when there was
   * none.
   * @throws IdemkitError `client_operation_in_doubt` when no try got an answer, `client_retry_refused` for a POST or PATCH
   * without a key that failed, `client_operation_changed` when the operation's key belongs to another request;
   * the signal's reason when the caller aborted.
   */
  (input: string | URL | Request, init?: OperationInit): Promise<R>;
  /** Forgets an operation's key: the next call of that name is a new operation. */
  forget(operation: string): Promise<void>;
}

const optionNames: readonly (keyof IdempotentFetchOptions)[] = [
  "fetch",
  "keys",
  "tryTimeoutMs",
  "totalTimeoutMs",
  "backoffBaseMs",
  "backoffMaxMs",
  "header",
  "random",
];

/** RFC 9110 section 9.2.2: these may be repeated by definition. */
const idempotentMethods = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/**
 * A `fetch` that keeps one key for one business operation, from before the first try until a final answer
 * (R-DIST-IDEM-X3), and repeats only what may be repeated (R-ERR-RETRY-3).
 * @throws IdemkitError `option_invalid`.
 */
export function idempotentFetch(options?: IdempotentFetchOptions): IdempotentFetch<Response>;
export function idempotentFetch<R extends ResponseLike>(
  options: IdempotentFetchOptions<R> & { readonly fetch: FetchLike<R> },
): IdempotentFetch<R>;
export function idempotentFetch<R extends ResponseLike>(
  options: IdempotentFetchOptions<R> = {},
): IdempotentFetch<R> {
  const settings = settingsOf(options);
  const keys = options.keys ?? memoryKeys();
  const header = options.header ?? "Idempotency-Key";

  async function once(input: string | URL | Request, init: OperationInit = {}): Promise<R> {
    const { operation, key, ...rest } = init;
    const request = await prepared(input, rest);
    const signal = rest.signal ?? (typeof input === "object" && "signal" in input ? input.signal : undefined);
    if (operation !== undefined) return named(operation, key, request, signal);
    const given = key ?? request.headers[header.toLowerCase()];
    const sent = await send(
      settings,
      withKey(request, given),
      signal,
      given !== undefined || repeatable(request),
    );
    return answerOf(sent, given !== undefined || repeatable(request));
  }

  async function named(
    operation: string,
    key: string | undefined,
    request: PreparedRequest,
    signal: AbortSignal | undefined,
  ): Promise<R> {
    const fresh: KeyEntry = {
      key: key ?? newKey(),
      request: request.hash,
      state: "in-doubt",
      createdAtMs: Date.now(),
    };
    const entry = await keys.claim(operation, fresh);
    if (entry.request !== request.hash || (key !== undefined && key !== entry.key)) {
      throw new IdemkitError("client_operation_changed");
    }
    const sent = await send(settings, withKey(request, entry.key), signal, true);
    await settle(operation, entry, sent, entry.key === fresh.key);
    return answerOf(sent, true);
  }

  /**
   * A refusal frees the name for a corrected request, but only where no earlier try can have taken effect unseen: after a
   * lost answer a 404 of some proxy proves nothing, while the receiver's stored answer does.
   */
  async function settle(operation: string, entry: KeyEntry, sent: Sent<R>, isFirst: boolean): Promise<void> {
    const certain =
      (isFirst && !sent.doubted) || sent.response?.headers.get("idempotent-replayed") === "true";
    if (sent.verdict === "refused" && certain) await keys.forget(operation);
    if (sent.verdict === "final") await keys.update(operation, { ...entry, state: "done" });
  }

  const withKey = (request: PreparedRequest, key: string | undefined): PreparedRequest =>
    key === undefined
      ? request
      : { ...request, headers: { ...request.headers, [header.toLowerCase()]: key } };

  return Object.assign(once, { forget: (operation: string) => keys.forget(operation) });
}

function settingsOf<R extends ResponseLike>(options: IdempotentFetchOptions<R>): SendSettings<R> {
  checkNames("idempotentFetch", options, optionNames);
  const day = 86_400_000;
  return {
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init) as Promise<never>),
    tryTimeoutMs: checkInteger("tryTimeoutMs", options.tryTimeoutMs ?? 10_000, 1, day),
    totalTimeoutMs: checkInteger("totalTimeoutMs", options.totalTimeoutMs ?? 60_000, 1, day),
    backoff: {
      baseMs: checkInteger("backoffBaseMs", options.backoffBaseMs ?? 200, 1, day),
      maxMs: checkInteger("backoffMaxMs", options.backoffMaxMs ?? 10_000, 1, day),
    },
    random: options.random ?? Math.random,
  };
}

function repeatable({ method }: PreparedRequest): boolean {
  return idempotentMethods.has(method);
}

function answerOf<R>(sent: Sent<R>, mayRepeat: boolean): R {
  if (sent.response !== undefined) return sent.response;
  throw new IdemkitError(mayRepeat ? "client_operation_in_doubt" : "client_retry_refused", {
    cause: sent.error,
  });
}

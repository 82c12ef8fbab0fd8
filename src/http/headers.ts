import type { OutgoingHttpHeaders } from "node:http";

import type { Answer } from "../core/ports.ts";
import { invalid } from "../internal/options.ts";

/** Names and values as they are stored: lower-case names, one entry for each value. */
export type HeaderList = Answer["headers"];

/** What belongs to the answer and not to the exchange; everything else is made anew for each response. */
const storedByDefault = [
  "content-type",
  "content-language",
  "content-disposition",
  "content-location",
  "location",
  "etag",
  "last-modified",
  "link",
  "retry-after",
  "allow",
  "deprecation",
  "sunset",
  "preference-applied",
];

/**
 * What must never be stored: credentials, what is true of one exchange only (dates, request ids, CORS, caching), and
 * what frames a message on one connection.
 */
const neverStored = new Set([
  "set-cookie",
  "cookie",
  "authorization",
  "authentication-info",
  "proxy-authorization",
  "proxy-authenticate",
  "proxy-authentication-info",
  "www-authenticate",
  "clear-site-data",
  "date",
  "age",
  "expires",
  "cache-control",
  "pragma",
  "vary",
  "server",
  "server-timing",
  "request-id",
  "x-request-id",
  "x-correlation-id",
  "correlation-id",
  "traceparent",
  "tracestate",
  "idempotency-key",
  "idempotent-replayed",
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "content-encoding",
]);
const neverStoredPrefix = "access-control-";
const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/**
 * The names of the headers that an operation stores.
 * @throws IdemkitError `option_invalid` for a name that must not be stored.
 */
export function storedHeaders(at: string, added: readonly string[] = []): ReadonlySet<string> {
  const names = added.map((name) => name.toLowerCase());
  for (const name of names) {
    if (!token.test(name)) throw invalid(at, `has ${JSON.stringify(name)}, which is no header name`);
    if (neverStored.has(name) || name.startsWith(neverStoredPrefix)) {
      throw invalid(at, `has ${name}, which belongs to one exchange or is a secret, and so is never stored`);
    }
  }
  return new Set([...storedByDefault, ...names]);
}

/** The part of an answer's headers that is stored. */
export function storable(headers: OutgoingHttpHeaders, stored: ReadonlySet<string>): HeaderList {
  const list: [string, string][] = [];
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || !stored.has(name)) continue;
    if (Array.isArray(value)) list.push(...value.map((each): [string, string] => [name, each]));
    else list.push([name, String(value)]);
  }
  return list;
}

/** Headers as Node takes them: several values of one name become an array. */
export function grouped(list: HeaderList): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of list) {
    const known = headers[name];
    headers[name] = known === undefined ? value : [known, value].flat();
  }
  return headers;
}

import type { Json } from "../core/canonical-json.ts";
import { commandOf } from "../core/fingerprint.ts";
import type { Command } from "../core/fingerprint.ts";
import { IdemkitError } from "../errors.ts";

/** What a `command` option gives. */
export type GivenCommand = Json | Uint8Array;

/** The command that a `command` option gave. */
export function givenCommand(given: GivenCommand | Promise<GivenCommand>): Command | Promise<Command> {
  return given instanceof Promise ? given.then(commandOf) : commandOf(given);
}

/** Methods that change something and have no idempotent meaning of their own for money; the others can't be protected. */
const protectable = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/** @throws IdemkitError `method_unprotectable`. */
export function checkMethod(method: string): void {
  if (!protectable.has(method)) throw new IdemkitError("method_unprotectable", { detail: method });
}

/**
 * What a fingerprint covers beside the body: the method, and the path and query that the client sent, before any router
 * has cut them.
 */
export function contextOf({ method, target }: { method: string; target: string }): readonly string[] {
  const relative = target.startsWith("/") ? target : pathOfAbsolute(target);
  const cut = relative.indexOf("?");
  return cut === -1 ? [method, relative, ""] : [method, relative.slice(0, cut), relative.slice(cut + 1)];
}

/** The absolute form of RFC 9112 section 3.2.2, which clients send to proxies. */
function pathOfAbsolute(target: string): string {
  if (!URL.canParse(target)) return target;
  const { pathname, search } = new URL(target);
  return pathname + search;
}

/** The headers that tell whether a request has a body, and of which kind. */
export interface BodyHeaders {
  readonly contentLength: string | undefined;
  readonly transferEncoding: string | undefined;
  readonly contentType: string | undefined;
  /** In HTTP/2, whether frames follow the headers: a body needs neither of the first two there. */
  readonly framesFollow?: boolean;
}

/** The part of a request of Node that tells of its body. */
interface NodeBody {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly httpVersionMajor: number;
  readonly stream?: { readonly endAfterHeaders?: boolean };
}

/** The headers of a request of Node. */
export function bodyHeadersOf({ headers, httpVersionMajor, stream }: NodeBody): BodyHeaders {
  return {
    contentLength: textOf(headers["content-length"]),
    transferEncoding: textOf(headers["transfer-encoding"]),
    contentType: textOf(headers["content-type"]),
    framesFollow: httpVersionMajor >= 2 && stream?.endAfterHeaders === false,
  };
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(", ") : header;
}

/** Whether a request has a body (RFC 9112 section 6.3); what a parser made of it doesn't tell. */
export function hasBody({ contentLength, transferEncoding, framesFollow }: BodyHeaders): boolean {
  if (contentLength !== undefined) return Number(contentLength) !== 0;
  return transferEncoding !== undefined || framesFollow === true;
}

/**
 * The command in what a framework's parsers made of a body, as the handler sees it.
 * @param parsed - the parsed body, or `undefined` where nothing has read it
 * @throws IdemkitError `command_body_unread`.
 */
export function parsedCommand(headers: BodyHeaders, parsed: unknown): Command {
  if (!hasBody(headers) && isNothing(parsed)) return { kind: "none" };
  refuseMultipart(headers);
  if (parsed === undefined || isUnreadKind(parsed)) throw unread(headers);
  if (parsed instanceof Uint8Array) return { kind: "bytes", value: parsed };
  return { kind: "json", value: parsed };
}

/** What parsers leave where there was no body; anything more must have come from somewhere. */
function isNothing(parsed: unknown): boolean {
  if (typeof parsed !== "object" || parsed === null) return parsed === undefined || parsed === null;
  return Object.keys(parsed).length === 0;
}

/** Streams and forms show nothing of their content to `Object.entries`: every one would look like `{}`. */
function isUnreadKind(parsed: unknown): boolean {
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return false;
  const prototype: unknown = Object.getPrototypeOf(parsed);
  if (prototype === Object.prototype || prototype === null) return false;
  const streams = "pipe" in parsed || "getReader" in parsed;
  return streams || parsed instanceof FormData || parsed instanceof Blob || parsed instanceof URLSearchParams;
}

/**
 * The command in the bytes of a body: JSON by its value, as the handler will parse it, anything else by its bytes.
 * @throws IdemkitError `command_body_unread` for multipart, whose boundary differs in every retry.
 */
export function bytesCommand(headers: BodyHeaders, bytes: Uint8Array): Command {
  if (bytes.length === 0) return { kind: "none" };
  refuseMultipart(headers);
  if (!isJson(headers)) return { kind: "bytes", value: bytes };
  try {
    return { kind: "json", value: JSON.parse(Buffer.from(bytes).toString("utf8")) as unknown };
  } catch {
    return { kind: "bytes", value: bytes }; // the handler will meet the same error
  }
}

const formType = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Whether a parsed `{}` can be the whole body: of these types, and no others, parsers make objects. */
export function isParsedToObject(headers: BodyHeaders): boolean {
  return isJson(headers) || formType.test(headers.contentType ?? "");
}

const jsonType = /^\s*(?:application\/json|[^;]+\+json)\s*(?:;|$)/i;

/** Whether the body is JSON by its content type. */
export function isJson({ contentType }: BodyHeaders): boolean {
  return contentType !== undefined && jsonType.test(contentType);
}

function refuseMultipart({ contentType }: BodyHeaders): void {
  if (contentType === undefined || !/^\s*multipart\//i.test(contentType)) return;
  throw new IdemkitError("command_body_unread", {
    detail: "a multipart body needs the option command: (request) => what makes two requests the same",
  });
}

function unread({ contentType }: BodyHeaders): IdemkitError {
  const type = contentType?.split(";")[0]?.trim().slice(0, 100);
  return new IdemkitError("command_body_unread", {
    detail: type === undefined ? "it has no content-type" : `no parser for ${JSON.stringify(type)}`,
  });
}

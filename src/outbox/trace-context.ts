/**
 * The active trace, read from where the API of OpenTelemetry keeps its globals (the symbol holds its major version), so
 * that a trace is carried on without a dependency and without a setting.
 */

const api = Symbol.for("opentelemetry.js.api.1");
const activeSpan = Symbol.for("OpenTelemetry Context Key SPAN");
const traceId = /^(?!0{32})[0-9a-f]{32}$/;
const spanId = /^(?!0{16})[0-9a-f]{16}$/;
/** W3C Trace Context, version 00. */
const traceparent = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Whether a text is a `traceparent` of W3C Trace Context. */
export function isTraceparent(text: unknown): text is string {
  return typeof text === "string" && traceparent.test(text);
}

/** The `traceparent` of the active span, also where it is not sampled: a consumer may link to it. */
export function activeTraceparent(): string | undefined {
  const context = call(member(member(globalThis, api), "context"), "active");
  const span = call(call(context, "getValue", activeSpan), "spanContext");
  const ids = [member(span, "traceId"), member(span, "spanId")] as const;
  if (typeof ids[0] !== "string" || typeof ids[1] !== "string") return undefined;
  if (!traceId.test(ids[0]) || !spanId.test(ids[1])) return undefined;
  const flags = member(span, "traceFlags");
  const hex = (typeof flags === "number" ? flags % 256 : 0).toString(16).padStart(2, "0");
  return `00-${ids[0]}-${ids[1]}-${hex}`;
}

function member(owner: unknown, name: string | symbol): unknown {
  return typeof owner === "object" && owner !== null ? Reflect.get(owner, name) : undefined;
}

function call(owner: unknown, name: string, ...given: readonly unknown[]): unknown {
  const method = member(owner, name);
  return typeof method === "function" ? (method.apply(owner, given) as unknown) : undefined;
}

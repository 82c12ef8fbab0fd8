/** The name of the protocol's error: the client wraps several errors of one response, and of retries, into one. */
export function protocolErrorOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("apiId" in error && typeof error.apiId === "string") return error.apiId;
  // The client replaces this one by an error of its own, which has no code that tells.
  if (error.message.startsWith("Unknown topic ")) return "UNKNOWN_TOPIC_OR_PARTITION";
  const inner = "errors" in error && Array.isArray(error.errors) ? (error.errors as unknown[]) : [];
  for (const each of [...inner, error.cause]) {
    const found = protocolErrorOf(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

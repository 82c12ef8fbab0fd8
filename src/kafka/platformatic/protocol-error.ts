/** The name of the protocol's error: the client wraps several errors of one response, and of retries, into one. */
export function protocolErrorOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("apiId" in error && typeof error.apiId === "string") return error.apiId;
  const inner = "errors" in error && Array.isArray(error.errors) ? (error.errors as unknown[]) : [];
  for (const each of [...inner, error.cause]) {
    const found = protocolErrorOf(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

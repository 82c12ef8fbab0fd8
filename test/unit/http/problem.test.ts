import { IdemkitError, errorCatalogue } from "idemkit";
import type { ErrorCode } from "idemkit";
import { problemOf } from "idemkit/http";
import { describe, expect, test } from "vitest";

const codes = Object.keys(errorCatalogue) as ErrorCode[];

describe("problemOf", () => {
  test.each(codes)("tells %s as problem details", (code) => {
    const { status, headers, body } = problemOf(new IdemkitError(code));
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(body).toMatchObject({ type: `urn:idemkit:error:${code}`, status, code });
    expect(body.title).not.toBe("");
    const { retryable } = errorCatalogue[code];
    expect(body.retry === "same-key").toBe(retryable);
    expect(headers["retry-after"]).toBe(retryable ? "1" : undefined);
    // What is told to come back with the same key was not answered by a defect; a provider is told of the handler's.
    const comesBack = code === "operation_in_progress" || code === "webhook_handler_failed";
    expect(status === 503 || comesBack).toBe(retryable);
  });

  test("tells which operation and which part of a command", () => {
    const details = { operationId: "01890000-0000-7000-8000-000000000000", at: "/amount" };
    const { body } = problemOf(new IdemkitError("command_number_unsafe", { details }));
    expect(body).toMatchObject({ operation_id: details.operationId, at: "/amount" });
  });

  test.each([
    new Error("a secret"),
    "a secret",
    undefined,
    Object.assign(new Error("a secret"), { code: "23505" }),
  ])("tells nothing of another error", (error) => {
    const { status, body } = problemOf(error);
    expect(status).toBe(500);
    expect(JSON.stringify(body)).toBe('{"type":"about:blank","title":"Internal Server Error","status":500}');
  });
});

import type { OperationRecord, Unclaimed } from "../core/ports.ts";
import type { Row } from "./connections.ts";

/** What a live row of `idempotency_record` says to somebody who wants to claim its operation. */
export function unclaimedOf(row: Row): Unclaimed {
  const operationId = row["operation_id"] as string;
  const fingerprint = row["fingerprint"] as Uint8Array;
  switch (row["disposition"]) {
    case "running":
      return { claim: "locked", fingerprint };
    case "uncertain":
      return { claim: "uncertain", operationId, fingerprint };
    default:
      return { claim: "found", record: recordOf(row) };
  }
}

function recordOf(row: Row): OperationRecord {
  return {
    operationId: row["operation_id"] as string,
    fingerprint: row["fingerprint"] as Uint8Array,
    disposition: row["disposition"] as OperationRecord["disposition"],
    status: row["status"] as number | null,
    headers: headersOf(row["headers"]),
    body: row["body"] as Uint8Array,
  };
}

/** A user's own type parser may leave `json` as text. */
function headersOf(given: unknown): OperationRecord["headers"] {
  const headers: unknown = typeof given === "string" ? JSON.parse(given) : given;
  return headers as OperationRecord["headers"];
}

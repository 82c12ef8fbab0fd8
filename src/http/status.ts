import type { ErrorCode } from "../errors.ts";

/** The HTTP status of every error of the catalogue: complete by type, and the only place that says so. */
const statuses: Readonly<Record<ErrorCode, number>> = {
  idempotency_key_missing: 400,
  idempotency_key_malformed: 400,
  idempotency_key_reused: 409,
  operation_in_progress: 409,
  operation_uncertain: 409,
  operation_refused: 422,
  idempotency_unavailable: 503,
  handler_timed_out: 503,
  command_number_unsafe: 400,
  command_too_deep: 400,
  command_not_json: 400,
  command_body_unread: 500,
  command_too_large: 413,
  scope_missing: 500,
  option_invalid: 500,
  retention_out_of_range: 500,
  operation_duplicate: 500,
  method_unprotectable: 500,
  response_too_large: 500,
  response_unsupported: 500,
  value_not_json: 500,
  transaction_closed: 500,
  transaction_control_refused: 500,
  transaction_aborted: 500,
  transaction_ended: 500,
  connection_timeout_missing: 500,
  schema_missing: 500,
  schema_newer: 500,
  fingerprint_version_unknown: 503,
  outbox_event_invalid: 500,
  outbox_event_too_large: 500,
  outbox_payload_refused: 500,
  outbox_too_many_keys: 500,
  outbox_transaction_unknown: 500,
  relay_publisher_invalid: 500,
  kafka_producer_unsafe: 500,
  kafka_auto_commit: 500,
  kafka_key_held: 503,
  kafka_publisher_closed: 500,
  event_malformed: 500,
  event_handler_failed: 503,
  inbox_unavailable: 503,
  inbox_aborted: 503,
  inbox_transaction_unknown: 500,
  webhook_body_invalid: 400,
  webhook_event_id_missing: 400,
  // One answer for a missing, malformed, old or wrong signature: it must not help to guess one.
  webhook_signature_invalid: 401,
  webhook_method: 405,
  webhook_body_too_large: 413,
  webhook_handler_failed: 500,
  webhook_body_consumed: 500,
  attempt_lost: 503,
  effect_name_reused: 500,
  effect_in_transaction: 500,
  effect_refused: 422,
  // The client's own, which no server answers.
  client_retry_refused: 500,
  client_operation_in_doubt: 503,
  client_operation_changed: 500,
};

/** The status of a mismatch: the seeds' 409, or the 422 of the IETF draft by option. */
export type MismatchStatus = 409 | 422;
export const mismatchStatuses: readonly MismatchStatus[] = [409, 422];

/** The status of an error. */
export function statusOf(code: ErrorCode): number {
  return statuses[code];
}

/** What is told where nothing more is known. */
export const internalError = 500;

/** Answers that say "not now" or "not you, not yet" and not "no": the same command may well succeed later. */
const notDefinitive = new Set([401, 403, 407, 408, 425, 429]);

/** Whether an answer settles the operation, so that a refusal with it may be stored. */
export function isDefinitive(status: number): boolean {
  return status >= 200 && status < 500 && !notDefinitive.has(status);
}

/** Whether an answer says that the server failed: never stored, however it was made. */
export function isFailure(status: number): boolean {
  return status >= 500;
}

/** RFC 9110: these have no content, and so no content-length. */
export function hasNoContent(status: number): boolean {
  return status === 204 || status === 304 || status < 200;
}

/**
 * The one catalogue of errors. A code is never renamed and a retired one is never used again; compare errors by
 * `code`, never by message. Transport numbers (HTTP status) live in `http/status.ts` alone.
 */

export interface CatalogueEntry {
  /** Whether the same call, with the same key, may succeed later. */
  readonly retryable: boolean;
  /** What happened and what to do, without payloads and without whole keys. */
  readonly message: string;
}

/** Every code with its default message; `docs/errors.md` has a section of the same name for each. */
export const errorCatalogue = {
  idempotency_key_missing: {
    retryable: false,
    message: "this operation needs an Idempotency-Key: one for each business operation, kept in retries",
  },
  idempotency_key_malformed: {
    retryable: false,
    message:
      "the Idempotency-Key must be one header of 1 to 255 printable ASCII characters, bare or as a quoted string",
  },
  idempotency_key_reused: {
    retryable: false,
    message:
      "this key was used with another command: send the first command again, or use a new key for a new operation",
  },
  operation_in_progress: {
    retryable: true,
    message: "the operation with this key is running: repeat it with the same key",
  },
  operation_uncertain: {
    retryable: false,
    message:
      "the outcome of the operation with this key is not known yet: do not repeat it under another key",
  },
  operation_refused: {
    retryable: false,
    message: "the operation was refused, and the refusal is stored: read `refusal` of the error's details",
  },
  idempotency_unavailable: {
    retryable: true,
    message:
      "the database could not be reached or kept refusing the transaction: repeat it with the same key",
  },
  handler_timed_out: {
    retryable: true,
    message:
      "the handler did not finish in handlerTimeoutMs and was rolled back: repeat it with the same key",
  },
  command_number_unsafe: {
    retryable: false,
    message: "the command holds a number that JavaScript cannot represent exactly: send it as a string",
  },
  command_too_deep: {
    retryable: false,
    message: "the command is nested more than 100 levels deep: flatten it",
  },
  command_not_json: {
    retryable: false,
    message: "the command is not JSON: give plain values, or bytes as a Uint8Array",
  },
  command_body_unread: {
    retryable: false,
    message:
      "the request has a body that no parser has read: install the parser for its content type before the route",
  },
  command_too_large: {
    retryable: false,
    message: "the request body is larger than maxRequestBytes: send less, or raise the option",
  },
  scope_missing: {
    retryable: false,
    message: 'the scope is empty or not a string: return the principal, or say scope: "shared"',
  },
  option_invalid: { retryable: false, message: "an option is missing, unknown or out of range" },
  retention_out_of_range: {
    retryable: false,
    message:
      "retentionHours must lie between 24 and 72: say allowUnsafeRetention: true where another value is meant",
  },
  operation_duplicate: {
    retryable: false,
    message: "two operations have one name: the name is part of a key's identity, so give each its own",
  },
  method_unprotectable: {
    retryable: false,
    message: "only POST, PUT, PATCH and DELETE can be protected: move the operation to one of them",
  },
  response_too_large: {
    retryable: false,
    message: "the response is larger than maxResponseBytes and could not be stored: nothing was committed",
  },
  response_unsupported: {
    retryable: false,
    message: "the handler used a response feature that cannot be stored and replayed: nothing was committed",
  },
  value_not_json: {
    retryable: false,
    message: "the handler's value cannot be stored as JSON: return plain values, or give a codec",
  },
  transaction_closed: {
    retryable: false,
    message: "the transaction of this operation has ended: await every statement before the handler returns",
  },
  transaction_control_refused: {
    retryable: false,
    message: "idemkit begins and ends the transaction: use savepoint(tx, work) for a part that may fail",
  },
  transaction_aborted: {
    retryable: false,
    message:
      "a statement of the handler failed and its error was swallowed: let it through, or use savepoint(tx, work)",
  },
  transaction_ended: {
    retryable: false,
    message:
      "the handler ended the transaction itself, so its record could not be committed with its effects",
  },
  connection_timeout_missing: {
    retryable: false,
    message:
      "the pool has no connectionTimeoutMillis: set one, or a handler that waits for a second connection hangs",
  },
  schema_missing: {
    retryable: false,
    message: "idemkit's tables are missing: call migrate(database) or run `npx idemkit migrate`",
  },
  schema_newer: {
    retryable: false,
    message: "idemkit's tables are of a newer, incompatible version: deploy that version",
  },
  fingerprint_version_unknown: {
    retryable: true,
    message:
      "the record is of a newer version of idemkit: finish the deployment, then repeat it with the same key",
  },
  outbox_event_invalid: {
    retryable: false,
    message: "the event cannot be sent as it is: see `at` of the error's details",
  },
  outbox_event_too_large: {
    retryable: false,
    message:
      "the event is larger than maxBytes: send a reference to the data, or raise the option and the broker's limit",
  },
  outbox_payload_refused: {
    retryable: false,
    message: "the event's payload does not have the shape that its schema asks for",
  },
  outbox_too_many_keys: {
    retryable: false,
    message: "a transaction may send events of at most 1000 keys, since each is a lock: split the work",
  },
  outbox_transaction_unknown: {
    retryable: false,
    message:
      "enqueue needs the tx of a running handler; with a client of your own call enqueueAll last in its transaction",
  },
  relay_publisher_invalid: {
    retryable: false,
    message:
      "the publisher did not answer with one result for each message, so all of them will be sent again",
  },
  kafka_producer_unsafe: {
    retryable: false,
    message:
      "the producer must wait for all in-sync replicas, be idempotent and take idemkit's partitions: leave these out",
  },
  kafka_auto_commit: {
    retryable: false,
    message: "offsets are committed by idemkit, after the database: switch the client's auto-commit off",
  },
  kafka_key_held: {
    retryable: true,
    message:
      "an earlier event of this key did not get through: this one was not sent, so that it can't overtake it",
  },
  kafka_publisher_closed: {
    retryable: false,
    message: "the publisher is closed: stop the relay before its publisher",
  },
  event_malformed: {
    retryable: false,
    message: "the message lacks what an event is recorded and ordered by: see `at` of the error's details",
  },
  inbox_unavailable: {
    retryable: true,
    message: "the database could not be reached or kept refusing the transaction: deliver the events again",
  },
  inbox_aborted: {
    retryable: true,
    message: "the delivery was given up by its signal and rolled back: deliver the events again",
  },
  event_handler_failed: {
    retryable: true,
    message: "the handler failed and was rolled back: deliver the event again",
  },
  inbox_transaction_unknown: {
    retryable: false,
    message: "applyIfNewer needs the tx of a handler of an inbox or a webhook, while that handler runs",
  },
  webhook_signature_invalid: {
    retryable: false,
    message: "the signature is missing, old or wrong",
  },
  webhook_body_invalid: {
    retryable: false,
    message: "the body is not what this webhook reads",
  },
  webhook_event_id_missing: {
    retryable: false,
    message: "the event has no id to recognise it by when it is sent again",
  },
  webhook_method: {
    retryable: false,
    message: "a webhook is sent with POST: this request is not one",
  },
  webhook_body_too_large: {
    retryable: false,
    message: "the body is larger than maxBodyBytes",
  },
  webhook_body_consumed: {
    retryable: false,
    message: "the body was read before the webhook could check its signature: mount it before body parsers",
  },
  webhook_handler_failed: {
    retryable: true,
    message: "the event could not be handled and nothing was committed: send it again",
  },
  attempt_lost: {
    retryable: true,
    message: "another attempt has taken the operation over: stop, its answer counts",
  },
  effect_name_reused: {
    retryable: false,
    message:
      "two effects or phases of one operation have one name: the name is part of the derived key, so give each its own",
  },
  effect_in_transaction: {
    retryable: false,
    message:
      "an effect was started while the final transaction is open: make every call before `transaction(work)`",
  },
  effect_refused: {
    retryable: false,
    message: "the other system refused the effect: read `refusal` of the error's details",
  },
  client_retry_refused: {
    retryable: false,
    message:
      "a POST or PATCH without a key failed and may have taken effect: give `operation` or `key` to have it retried",
  },
  client_operation_in_doubt: {
    retryable: true,
    message: "the operation got no final answer yet: repeat it as it was, its key is kept",
  },
  client_operation_changed: {
    retryable: false,
    message:
      "this operation has a key already, for another request: repeat that one, or call forget(operation) when it is settled",
  },
} as const;

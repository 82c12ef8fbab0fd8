import { IdemkitError } from "../errors.ts";
import { invalid } from "../internal/options.ts";
import type { CheckedEvent } from "./outgoing.ts";
import { pendingEvents } from "./pending.ts";
import { channelOf, payloadOf } from "./wake.ts";

/** The member that is called of a client that idemkit did not hand out; those of `pg` fit. */
export interface PlainClient {
  query(statement: { text: string; values: unknown[] }): Promise<unknown>;
  /** Since pg 8.19: `I` idle, `T` in a transaction, `E` in a failed one. */
  getTransactionStatus?(): "I" | "T" | "E" | null;
}

/** Settings of `enqueueAll` that matter with a client of your own only. */
export interface PlainClientOptions {
  /** Where idemkit's tables are; a database of `fromPg` fits. @defaultValue the schema `idemkit`, with a NOTIFY */
  readonly database?: { readonly schema: string; readonly notify?: boolean } | undefined;
  /** Whether relays are woken, by one NOTIFY that is sent when your transaction commits. @defaultValue the database's */
  readonly notify?: boolean | undefined;
}

/** @throws IdemkitError `outbox_transaction_unknown` where the client has no transaction open, `option_invalid`; the driver's errors. */
export async function enqueueWithClient(
  client: PlainClient,
  events: readonly CheckedEvent[],
  { database, notify = database?.notify ?? true }: PlainClientOptions,
): Promise<void> {
  if (typeof client?.query !== "function") {
    throw invalid("tx", "must be a handler's tx, or a client of pg in a transaction");
  }
  if (isOutsideTransaction(client)) {
    throw new IdemkitError("outbox_transaction_unknown", { detail: "this client has no transaction open" });
  }
  if (events.length === 0) return;
  const schema = database?.schema ?? "idemkit";
  const pending = pendingEvents(schema);
  pending.add(events);
  const { text, values = [] } = pending.insert();
  await client.query({ text, values: [...values] });
  if (!notify) return;
  await client.query({
    text: "select pg_notify($1, $2)",
    values: [channelOf(schema), payloadOf(pending.shards())],
  });
}

/** A pool would commit the events on a connection of their own, whatever becomes of the caller's transaction. */
function isOutsideTransaction(client: PlainClient): boolean {
  return "totalCount" in client || client.getTransactionStatus?.() === "I";
}

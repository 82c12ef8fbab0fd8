import { createHmac } from "node:crypto";
import type { LedgerEntry } from "./ledger.ts";
import type { Switches } from "./switches.ts";

/** Tells the merchant what happened. */
export interface Webhooks {
  send(entry: LedgerEntry, switches: Switches): void;
}

const TIMEOUT_MS = 5000;

/** Signed as Standard Webhooks says: HMAC-SHA256 over id, time and body. */
export const signatureOf = (secret: string, id: string, timestamp: string, body: string): string => {
  const key = Buffer.from(secret.replace(/^whsec_/u, ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
};

/** Sends without being waited for; a reordered one waits for the one behind it. */
export const webhooks = (): Webhooks => {
  let held: (() => void) | undefined;
  return {
    send: (entry, switches) => {
      if (switches.webhookUrl === "") {
        return;
      }
      const times = switches.webhooksDoubled ? 2 : 1;
      const deliver = (): void => {
        for (let sent = 0; sent < times; sent += 1) {
          void post(entry, switches);
        }
      };
      if (switches.webhooksReordered && held === undefined) {
        held = deliver;
        return;
      }
      deliver();
      held?.();
      held = undefined;
    },
  };
};

const post = async (entry: LedgerEntry, { webhookUrl, webhookSecret }: Switches): Promise<void> => {
  const id = `evt_${entry.id}`;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const body = JSON.stringify({ type: `${entry.kind}.succeeded`, data: entry });
  const headers = {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatureOf(webhookSecret, id, timestamp, body),
  };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  // A merchant that doesn't listen misses it, as with any provider.
  await fetch(webhookUrl, { method: "POST", headers, body, signal }).catch(() => {});
};

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LedgerEntry } from "../../../services/payments/src/provider/ledger.ts";
import type { Switches } from "../../../services/payments/src/provider/switches.ts";
import { spawnProcess } from "../../support/index.ts";
import type { TestProcess } from "../../support/index.ts";
import { ask } from "./client.ts";
import { unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

/** A running provider with books of its own, which outlive it. */
export interface ProviderProcess {
  readonly url: string;
  readonly process: TestProcess;
  turn(switches: Partial<Switches>): Promise<void>;
  ledger(): Promise<readonly LedgerEntry[]>;
  /** Starts it again with the same books, at the same place, after it was killed. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export const startProviderProcess = async (switches: Partial<Switches> = {}): Promise<ProviderProcess> => {
  const folder = await mkdtemp(join(tmpdir(), "payments-provider-"));
  const spawn = async (port: string): Promise<{ process: TestProcess; url: string }> => {
    const process = spawnProcess("services/payments/dist/provider/main.js", {
      env: {
        PROVIDER_LEDGER: join(folder, "ledger.jsonl"),
        PROVIDER_SWITCHES: JSON.stringify(switches),
        PROVIDER_PORT: port,
      },
    });
    const [, url = ""] = await process.waitForLine(/Provider listening at (http:\/\/[\d.:]+)/u);
    return { process, url };
  };
  let running = await spawn("0");
  const { url } = running;
  return {
    url,
    get process() {
      return running.process;
    },
    turn: async (changes) => {
      const { status, text } = await ask(`${url}/switches`, { method: "PUT", body: changes });
      if (status !== 200) {
        throw new Error(`the provider answered ${status}: ${text}`);
      }
    },
    ledger: async () => {
      const { text } = await ask(`${url}/ledger`);
      return JSON.parse(text) as LedgerEntry[];
    },
    restart: async () => {
      await running.process.exited;
      running = await spawn(new URL(url).port);
    },
    close: async () => {
      await running.process.kill("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
};

/** Short enough for a test, and long enough for a busy machine to keep a living lease. */
export const shortTimes = {
  LEASE_MS: "3000",
  BACKGROUND_EVERY_MS: "100",
  PROVIDER_DEADLINE_MS: "700",
  PROVIDER_GRACE_MS: "100",
} as const;

/** A customer with an order of 21.00 EUR. */
export interface Buyer {
  readonly sub: string;
  readonly token: string;
  readonly orderId: string;
}

export const newBuyer = async (stage: Stage, url: string, sku = "teapot"): Promise<Buyer> => {
  const sub = unique("buyer");
  const token = await stage.token(sub);
  const items = [{ sku, quantity: 2, unitPrice: "10.50" }];
  const order = await ask(`${url}/orders`, { token, key: unique("order"), body: { items, currency: "EUR" } });
  if (order.status !== 201) {
    throw new Error(`POST /orders answered ${order.status}: ${order.text}`);
  }
  return { sub, token, orderId: String(order.json["id"]) };
};

/** Movements of the ledger that belong to the order's payments and refunds. */
export const movementsOf = async (
  stage: Stage,
  provider: ProviderProcess,
  orderId: string,
): Promise<readonly LedgerEntry[]> => {
  const { rows } = await stage.pool.query<{ id: string; external: string | null }>({
    text: "select id, external_payment_id as external from public.payment where order_id = $1",
    values: [orderId],
  });
  const ids = new Set(rows.map(({ id }) => id));
  const entries = await provider.ledger();
  const charges = entries.filter(({ kind, reference }) => kind === "charge" && ids.has(reference));
  const chargeIds = new Set(charges.map(({ id }) => id));
  return [
    ...charges,
    ...entries.filter(({ kind, reference }) => kind === "refund" && chargeIds.has(reference)),
  ];
};

import type { Outcome } from "idemkit";
import { runOnce } from "idemkit";
import { fromPg } from "idemkit/pg";
import { expect, test } from "vitest";

import { charge, chargeOf } from "../integration/postgres/support/payments.ts";
import type { Database, Payment, PaymentOnce } from "../integration/postgres/support/payments.ts";
import { startCluster, until } from "../support/index.ts";

interface Acknowledged {
  readonly key: string;
  readonly outcome: Outcome<Payment>;
}

interface Client {
  readonly acknowledged: Acknowledged[];
  /** The codes of what went wrong on the way. */
  readonly failures: string[];
}

/** One key, again and again until there is a final answer, each time at the next database object. */
async function charged(
  key: string,
  databases: readonly Database[],
  failures: string[],
): Promise<Acknowledged> {
  let run = 0;
  const handler = (once: PaymentOnce): Promise<Payment> => {
    run += 1;
    return charge(once, run);
  };
  for (let attempt = 0; ; attempt += 1) {
    const database = databases[attempt % databases.length];
    if (database === undefined) throw new Error("no database");
    try {
      const outcome = await runOnce(database, chargeOf(key), handler);
      if (outcome.outcome !== "in-progress") return { key, outcome };
    } catch (error) {
      failures.push((error as { code?: string }).code ?? String(error));
    }
    await new Promise((resolve) => {
      setImmediate(resolve); // the event loop gets to the sockets between two refused connections
    });
  }
}

/** One client: a new key as long as the test runs. */
async function client(name: string, databases: readonly Database[], running: () => boolean): Promise<Client> {
  const [acknowledged, failures]: [Acknowledged[], string[]] = [[], []];
  for (let n = 0; running(); n += 1) acknowledged.push(await charged(`${name}-${n}`, databases, failures));
  return { acknowledged, failures };
}

test("through immediate stops of the server nothing acknowledged is lost, nothing happens twice, and work goes on", async () => {
  await using cluster = await startCluster({ durable: true });
  const database = await cluster.createDatabase();
  const admin = database.pool({ max: 1 });
  await admin.query(
    "create table payment (id bigserial primary key, key text not null, amount int not null)",
  );
  const databases = [false, true].map((pipeline) =>
    fromPg(database.pool({ max: 5, pipeline, connectionTimeoutMillis: 2000 })),
  );
  let running = true;
  const clients = Array.from({ length: 8 }, (_, i) => client(`client-${i}`, databases, () => running));
  const committed = async (): Promise<number> => {
    const { rows } = await admin.query<{ n: number }>("select count(*)::int as n from payment");
    return rows[0]?.n ?? 0;
  };
  for (let outage = 0; outage < 2; outage += 1) {
    const before = await committed();
    await until(async () => (await committed()) > before + 20, { timeoutMs: 20_000, what: "payments go on" });
    await cluster.stop("immediate");
    await cluster.start();
    await until(() => committed().catch(() => 0), { timeoutMs: 20_000, what: "the server is back" });
  }
  const before = await committed();
  await until(async () => (await committed()) > before + 20, {
    timeoutMs: 20_000,
    what: "payments go on at last",
  });
  running = false;
  const results = await Promise.all(clients);

  const failures = new Set(results.flatMap((each) => each.failures));
  expect(failures).toEqual(new Set(["idempotency_unavailable"]));
  const { rows } = await admin.query<Payment>("select key, amount from payment order by key");
  const paid = new Map(rows.map(({ key, amount }) => [key, amount]));
  expect(paid.size).toBe(rows.length); // none twice
  const acknowledged = results.flatMap((each) => each.acknowledged);
  for (const { key, outcome } of acknowledged) {
    expect(outcome).toMatchObject({ value: { key, amount: paid.get(key) } });
    const [first] = databases;
    if (first === undefined) throw new Error("no database");
    expect(await runOnce(first, chargeOf(key), charge)).toEqual({ ...outcome, outcome: "replayed" });
  }
  expect(acknowledged).toHaveLength(rows.length); // each client got to the end of each of its keys
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { startCluster, until } from "../../support/index.ts";
import type { TestCluster } from "../../support/index.ts";
import { ask, countPayments, newCharge, newShopper } from "./client.ts";
import { persist } from "./persist.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

const WORKERS = 8;
let cluster: TestCluster;
let stage: Stage;

beforeAll(async () => {
  // With fsync on: what was acknowledged has to be on the disk.
  cluster = await startCluster({ durable: true });
  stage = await openStage(() => cluster.createDatabase());
});
afterAll(async () => {
  await stage.close();
  await cluster.remove();
});

interface Acknowledged {
  readonly orderId: string;
  readonly paymentId: unknown;
}

test("loses nothing and does nothing twice when PostgreSQL is cut off under load, and recovers by itself", async () => {
  const service = await stage.startReplica({ poolSize: 5 });
  const { token } = await newShopper(stage, service.url);
  const charges = await Promise.all(Array.from({ length: 400 }, () => newCharge(service.url, token)));
  const acknowledged: Acknowledged[] = [];
  const tries: number[] = [];
  const stopping = new AbortController();
  const work = async (): Promise<void> => {
    for (
      let charge = charges.pop();
      charge !== undefined && !stopping.signal.aborted;
      charge = charges.pop()
    ) {
      const call = { token, key: unique("key"), body: charge };
      const done = await persist(`${service.url}/payments`, call, { patience: 0.1 });
      expect([201, 200]).toContain(done.final.status);
      tries.push(...done.tries);
      acknowledged.push({ orderId: charge.orderId, paymentId: done.final.json["id"] });
    }
  };
  const workers = Array.from({ length: WORKERS }, work);

  await until(() => acknowledged.length > 20, { what: "load" });
  await cluster.stop("immediate");
  const before = acknowledged.length;
  await until(async () => (await ask(`${service.url}/ready`)).status === 503, {
    what: "readiness turns false",
  });
  const away = await ask(`${service.url}/payments`, {
    token,
    key: unique("key"),
    body: {
      orderId: "00000000-0000-4000-8000-000000000000",
      provider: "p",
      externalPaymentId: "e",
      amount: "1",
      currency: "EUR",
    },
  });
  expect(away.status).toBe(503);
  expect(away.headers.get("retry-after")).toBe("1");
  expect((await ask(`${service.url}/health`)).status).toBe(200);
  await cluster.start();
  await until(async () => (await ask(`${service.url}/ready`)).status === 200, {
    what: "readiness turns true again",
  });
  await until(() => acknowledged.length > before + 40, { timeoutMs: 30_000, what: "work goes on" });
  stopping.abort();
  await Promise.all(workers);

  expect(tries).toContain(503);
  expect(tries.filter((status) => status !== 503 && status !== 409)).toEqual([]);
  const { rows } = await stage.pool.query<{ order_id: string; ids: string[] }>(
    "select order_id, array_agg(id::text) as ids from public.payment group by order_id",
  );
  const payments = new Map(rows.map((row) => [row.order_id, row.ids]));
  for (const { orderId, paymentId } of acknowledged) {
    expect(payments.get(orderId)).toEqual([paymentId]);
  }
  expect(await countPayments(stage)).toBe(acknowledged.length);
});

test("a service with nothing to do outlives its database", async () => {
  const service = await stage.startReplica();
  const { token, charge } = await newShopper(stage, service.url);
  const reads = () =>
    Promise.all(Array.from({ length: 10 }, () => ask(`${service.url}/orders/${charge.orderId}`, { token })));
  await reads();
  await cluster.stop("fast");
  for (const answer of await reads()) {
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("1");
  }
  await cluster.start();
  await until(async () => (await ask(`${service.url}/ready`)).status === 200, {
    what: "readiness turns true again",
  });
  expect((await reads()).map((answer) => answer.status)).toEqual(Array.from({ length: 10 }, () => 200));
});

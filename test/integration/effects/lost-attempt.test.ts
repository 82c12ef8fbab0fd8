import { withEffects } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { createDatabase, until } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { call, charging, deferred } from "./charging.ts";
import type { Charge, Charged, Once } from "./charging.ts";
import { provider } from "./provider.ts";

let created: TestDatabase;
let pool: Pool;
let database: PostgresDatabase<PoolClient>;

beforeAll(async () => {
  created = await createDatabase();
  pool = created.pool({ max: 5 });
  await pool.query("create table charge (operation_id uuid primary key, charge_id text not null)");
});
beforeEach(() => {
  database = fromPg(pool); // operations are named once for each database object
});
afterAll(() => created.drop());

/** Short, but long enough for a busy machine to keep a living lease alive. */
const fast = { leaseMs: 3000, heartbeatMs: 100 };

async function chargesWritten(): Promise<number> {
  const { rows } = await pool.query("select count(*)::int as n from charge");
  return (rows[0] as { n: number }).n;
}

describe("an attempt that lost its operation", () => {
  test("can neither intend, finish nor release; the one that took over answers", async () => {
    const psp = provider();
    const other = fromPg(pool); // another process
    const held = deferred<undefined>();
    const inCall = deferred<undefined>();
    let runs = 0;
    const handler = async (command: Charge, once: Once): Charged => {
      runs += 1;
      if (runs === 1) {
        // A paused process: its heartbeat stops too, as if its event loop had.
        await pool.query(
          "update idemkit.idempotency_record set lease_expires_at = now() where operation_id = $1",
          [once.operationId],
        );
        inCall.resolve(undefined);
        await held.promise;
      }
      return charging(psp)(command, once);
    };
    const slow = { leaseMs: 60_000, heartbeatMs: 20_000 };
    const charge = withEffects(database, { operation: "charge", ...slow }, handler);
    const elsewhere = withEffects(other, { operation: "charge", ...slow }, handler);
    const given = call();
    const before = await chargesWritten();
    const first = charge(given);
    await inCall.promise;
    const second = await elsewhere(given);
    held.resolve(undefined);
    expect(second).toMatchObject({ outcome: "executed" });
    expect(await first).toEqual({ outcome: "in-progress" });
    expect(await charge(given)).toMatchObject({ outcome: "replayed" });
    expect(psp.total()).toBe(1);
    expect(await chargesWritten()).toBe(before + 1);
  });

  test("is told by its signal when the heartbeat finds it out", async () => {
    const other = fromPg(pool);
    const aborted = deferred<unknown>();
    let runs = 0;
    const handler = async (_command: Charge, { signal, operationId }: Once): Promise<string> => {
      runs += 1;
      if (runs > 1) return "taken over";
      const end =
        "update idemkit.idempotency_record set lease_expires_at = '-infinity', attempt_id = gen_random_uuid()";
      await pool.query(`${end} where operation_id = $1`, [operationId]);
      signal.addEventListener("abort", () => aborted.resolve(signal.reason));
      return new Promise<string>(() => {});
    };
    const charge = withEffects(database, { operation: "charge", ...fast }, handler);
    const elsewhere = withEffects(other, { operation: "charge", ...fast }, handler);
    const given = call();
    const first = charge(given);
    await until(() => runs === 1, { timeoutMs: 5000 });
    expect(await aborted.promise).toMatchObject({ code: "attempt_lost" });
    expect(await first).toEqual({ outcome: "in-progress" });
    expect(await elsewhere(given)).toMatchObject({ outcome: "executed", value: "taken over" });
  });

  test("keeps its lease while it lives, longer than the lease", async () => {
    const other = fromPg(pool);
    const claimed = deferred<undefined>();
    const go = deferred<undefined>();
    const charge = withEffects(database, { operation: "charge", ...fast }, async (_command: Charge) => {
      claimed.resolve(undefined);
      await go.promise;
      return "done";
    });
    const elsewhere = withEffects(other, { operation: "charge", ...fast }, () => "stolen");
    const given = call();
    const first = charge(given);
    await claimed.promise;
    const lived = performance.now() + 1.5 * fast.leaseMs;
    await until(
      async () => {
        expect(await elsewhere(given)).toEqual({ outcome: "in-progress" });
        return performance.now() > lived;
      },
      { timeoutMs: 10_000 },
    );
    go.resolve(undefined);
    expect(await first).toMatchObject({ outcome: "executed", value: "done" });
  });
});

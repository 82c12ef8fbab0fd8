import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { rowsOf } from "./counts.ts";
import { newCharge } from "./customer.ts";
import type { Customer } from "./customer.ts";
import type { Scene } from "./scene.ts";
import { describe } from "./describe.ts";

const POLL_MS = 20;

/**
 * Holds the order's row, so that the charge stops in the middle of its transaction, and kills the service there. No
 * hook in the service is needed: it waits for a lock, as it might for any other transaction.
 */
export const killInTheMiddle = async (scene: Scene, customer: Customer): Promise<void> => {
  const charge = await newCharge(customer, "kill");
  const key = `charge-kill-${customer.sub}`;
  const holder = await scene.pool.connect();
  scene.say("\nSIGKILL in the middle of a charge");
  try {
    const { rows } = await holder.query<{ pid: number }>("select pg_backend_pid() as pid");
    await holder.query("begin");
    await holder.query({
      text: "select 1 from public.orders where id = $1 for update",
      values: [charge["orderId"]],
    });
    const lost = customer.post("/payments", charge, key).then(describe, noAnswer);
    const victim = await waitingFor(scene.pool, rows[0]?.pid, scene.stopped);
    await scene.kill();
    scene.say(`  ${await lost}`);
    await holder.query("rollback");
    await gone(scene.pool, victim, scene.stopped);
  } finally {
    holder.release(true);
  }
  scene.say(`  ${await rowsOf(scene.pool, customer.sub)}`);
  await scene.restart();
  scene.say("  the service is started again, and the client repeats the request:");
  scene.say(`  ${describe(await customer.post("/payments", charge, key))}`);
  scene.say(`  ${describe(await customer.post("/payments", charge, key))}`);
  scene.say(`  ${await rowsOf(scene.pool, customer.sub)}`);
};

const noAnswer = (error: unknown): string => {
  const { cause } = error as { readonly cause?: { readonly code?: string } };
  return `no answer: ${cause?.code ?? String(error)}`;
};

/** The server process that waits for a lock of `holder`. Asked elsewhere: inside a transaction the view stands still. */
const waitingFor = async (pool: Pool, holder: number | undefined, signal: AbortSignal): Promise<number> => {
  for (;;) {
    const { rows } = await pool.query<{ pid: number }>({
      text: "select pid from pg_stat_activity where $1 = any (pg_blocking_pids(pid))",
      values: [holder],
    });
    if (rows[0] !== undefined) {
      return rows[0].pid;
    }
    await delay(POLL_MS, undefined, { signal });
  }
};

/** The lost transaction's server process notices that its client has gone; only then do row counts mean anything. */
const gone = async (pool: Pool, pid: number, signal: AbortSignal): Promise<void> => {
  for (;;) {
    const { rows } = await pool.query({
      text: "select 1 from pg_stat_activity where pid = $1",
      values: [pid],
    });
    if (rows.length === 0) {
      return;
    }
    await delay(POLL_MS, undefined, { signal });
  }
};

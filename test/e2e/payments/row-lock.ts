import type { Stage } from "./stage.ts";
import { until } from "../../support/index.ts";

/** A lock on an order's row, which stops a charge of it in the middle of its transaction. */
export interface RowLock {
  /** Waits until a transaction of the service is waiting for this lock, and gives its server process. */
  victim(): Promise<number>;
  release(): Promise<void>;
}

export const lockOrder = async (stage: Stage, orderId: string): Promise<RowLock> => {
  const holder = await stage.pool.connect();
  // A test that fails drops the database under it, which must not hide why it failed.
  holder.on("error", () => {});
  const { rows } = await holder.query<{ pid: number }>("select pg_backend_pid() as pid");
  await holder.query("begin");
  await holder.query({ text: "select 1 from public.orders where id = $1 for update", values: [orderId] });
  let released: Promise<void> | undefined;
  const release = async (): Promise<void> => {
    await holder.query("rollback");
    holder.release();
  };
  return {
    victim: () =>
      until(() => waiterOf(stage, rows[0]?.pid), { what: "a charge that waits for the order's row" }),
    release: () => (released ??= release()),
  };
};

const waiterOf = async (stage: Stage, holder: number | undefined): Promise<number | undefined> => {
  const { rows } = await stage.pool.query<{ pid: number }>({
    text: "select pid from pg_stat_activity where $1 = any (pg_blocking_pids(pid))",
    values: [holder],
  });
  return rows[0]?.pid;
};

/** Waits until that server process has ended, and its transaction with it. */
export const backendGone = (stage: Stage, pid: number, timeoutMs: number): Promise<true> =>
  until(
    async () => {
      const text = "select 1 from pg_stat_activity where pid = $1";
      const { rows } = await stage.pool.query({ text, values: [pid] });
      return rows.length === 0;
    },
    { timeoutMs, what: `the end of server process ${pid}` },
  );

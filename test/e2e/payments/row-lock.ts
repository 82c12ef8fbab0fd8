import type { Stage } from "./stage.ts";
import { until } from "../../support/index.ts";

/** A lock that stops a charge inside its transaction. */
export interface RowLock {
  /** Waits until a transaction of the service is waiting for this lock, and gives its server process. */
  victim(): Promise<number>;
  release(): Promise<void>;
}

/** A lock on the order's row, which a charge of it waits for in the middle. */
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

/** A lock that every transaction with a payment waits for at its COMMIT. */
export const lockCommits = async (stage: Stage): Promise<RowLock> => {
  await stage.pool.query(`
    create function public.wait_at_commit() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(1); return null; end';
    create constraint trigger wait_at_commit after insert on public.payment
      deferrable initially deferred for each row execute function public.wait_at_commit()`);
  const holder = await stage.pool.connect();
  const { rows } = await holder.query<{ pid: number }>(
    "select pg_backend_pid() as pid from pg_advisory_lock(1)",
  );
  const release = async (): Promise<void> => {
    await holder.query("select pg_advisory_unlock(1)");
    holder.release();
    await stage.pool.query("drop function public.wait_at_commit cascade");
  };
  return {
    victim: () => until(() => waiterOf(stage, rows[0]?.pid), { what: "a charge that waits at its COMMIT" }),
    release,
  };
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

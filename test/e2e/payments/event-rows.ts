import type { Stage } from "./stage.ts";

/** An event that waits in the outbox. */
export interface WaitingEvent {
  readonly type: string;
  readonly topic: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The events of an order that no relay has taken, in their order. */
export const waitingEvents = async (stage: Stage, orderId: string): Promise<readonly WaitingEvent[]> => {
  const { rows } = await stage.pool.query<{ type: string; topic: string; payload: Buffer }>({
    text: "select type, topic, payload from idemkit.outbox_event where key = $1 order by id",
    values: [orderId],
  });
  return rows.map(({ type, topic, payload }) => ({
    type,
    topic,
    data: JSON.parse(payload.toString("utf8")) as Record<string, unknown>,
  }));
};

export const waitingTypes = async (stage: Stage, orderId: string): Promise<readonly string[]> =>
  (await waitingEvents(stage, orderId)).map(({ type }) => type);

/**
 * Makes the commit of rows of `table` that meet `condition` fail, after everything in their transaction went
 * well; gives back what takes the fault away.
 */
export const failCommits = async (
  stage: Stage,
  table: string,
  condition: string,
): Promise<() => Promise<void>> => {
  await stage.pool.query(`
    create function public.fail_commit() returns trigger language plpgsql as
      $$ begin raise exception 'this commit fails'; end $$;
    create constraint trigger fail_commit after insert or update on public.${table}
      deferrable initially deferred for each row when (${condition}) execute function public.fail_commit()`);
  return async () => {
    await stage.pool.query(`drop trigger fail_commit on public.${table}; drop function public.fail_commit()`);
  };
};

// Sagas of five calls each, by idemkit and by hand: what one step costs.
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";

import { defineSaga, startSaga, startSagas, step } from "idemkit";

export const stepsOfSaga = 5;
const names = Array.from({ length: stepsOfSaga }, (_, n) => `step-${n}`);

/** @typedef {(key: string) => Promise<{ chargeId: string }>} Provider */

/**
 * @param {import("idemkit").PostgresDatabase<import("pg").PoolClient>} database
 * @param {Provider} provider
 * @param {{ count: number, concurrency: number }} load
 * @returns {Promise<number>} seconds for all
 */
export async function byIdemkit(database, provider, { count, concurrency }) {
  const definition = defineSaga("bench", {
    steps: names.map((name) =>
      step(name, { run: ({ key }) => provider(key), compensate: () => Promise.resolve(null) }),
    ),
  });
  for (let n = 0; n < count; n += 1) await startSaga(database, definition, { input: { n } });
  const begun = performance.now();
  let ended = 0;
  const moved = new EventTarget();
  const all = once(moved, "all");
  const onMoved = () => {
    ended += 1;
    if (ended === count) moved.dispatchEvent(new Event("all"));
  };
  const runner = startSagas(database, [definition], { pollMs: 10, concurrency, onMoved });
  await all;
  const seconds = (performance.now() - begun) / 1000;
  await runner.stop();
  return seconds;
}

const claim = `
  update hand_saga set attempt_id = gen_random_uuid(), lease_expires_at = clock_timestamp() + interval '30 s'
  where saga_id in (select saga_id from hand_saga where state = 'running' and wake_at <= clock_timestamp()
    and lease_expires_at <= clock_timestamp() order by wake_at limit $1 for update skip locked)
  returning saga_id, attempt_id`;
const fence = `
  with mine as (update hand_saga set lease_expires_at = clock_timestamp() + interval '30 s'
    where saga_id = $1 and attempt_id = $2 and state = 'running' returning saga_id)`;
const intent = `${fence}
  insert into hand_step (saga_id, step, direction, derived_key, state) select saga_id, $3, 'action', $4, 'intent' from mine`;
const result = `${fence}
  update hand_step set state = 'done', result = $4, ended_at = clock_timestamp() from mine
  where hand_step.saga_id = mine.saga_id and step = $3 and direction = 'action'`;
const ledger = "select step, state, result from hand_step where saga_id = $1";
const end =
  "update hand_saga set state = 'committed', attempt_id = null where saga_id = $1 and attempt_id = $2";

/**
 * @param {import("pg").Pool} pool
 * @param {Provider} provider
 * @param {{ count: number, concurrency: number }} load
 * @returns {Promise<number>} seconds for all
 */
export async function byHand(pool, provider, { count, concurrency }) {
  const run = (/** @type {string} */ name, /** @type {string} */ text, /** @type {unknown[]} */ values) =>
    pool.query({ name: `saga-${name}`, text, values });
  for (let n = 0; n < count; n += 1) {
    await run("start", "insert into hand_saga (saga_id, state, input) values ($1, 'running', $2)", [
      randomUUID(),
      Buffer.from(JSON.stringify({ n })),
    ]);
  }
  const begun = performance.now();
  const worker = async () => {
    for (;;) {
      const { rows } = await run("claim", claim, [1]);
      const [row] = /** @type {{ saga_id: string, attempt_id: string }[]} */ (rows);
      if (row === undefined) return;
      const { saga_id: id, attempt_id: attempt } = row;
      await run("ledger", ledger, [id]);
      for (const name of names) {
        const key = createHash("sha256").update(`${id}\0${name}`).digest("hex").slice(0, 40);
        await run("intent", intent, [id, attempt, name, key]);
        const charge = await provider(key);
        await run("result", result, [id, attempt, name, Buffer.from(JSON.stringify(charge))]);
      }
      await run("end", end, [id, attempt]);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return (performance.now() - begun) / 1000;
}

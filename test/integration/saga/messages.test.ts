import { randomUUID } from "node:crypto";

import {
  createInbox,
  defineSaga,
  enqueue,
  localStep,
  messageStep,
  participate,
  replyToSaga,
  sagaStatus,
  startRelay,
  startSaga,
} from "idemkit";
import type {
  Direction,
  EventMessage,
  Inbox,
  MessageStepOptions,
  PostgresDatabase,
  Publisher,
  Relay,
} from "idemkit";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { openShop, reserve, retry } from "./shop.ts";
import type { Checkout, CheckoutSaga, Shop } from "./shop.ts";

let shop: Shop;
let database: PostgresDatabase<PoolClient>;
let relay: Relay;
/** What the relay has published, for the test to deliver: once, twice, late, or in another order. */
let mail: EventMessage[] = [];

const publisher: Publisher = {
  publish: (messages) => {
    mail.push(...messages);
    return Promise.resolve(messages.map(() => ({ published: "acknowledged" as const })));
  },
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

beforeAll(async () => {
  shop = await openShop();
  ({ database } = shop);
  await shop.pool.query("create table parcel (saga_id uuid not null, sign integer not null)");
  relay = startRelay(database, { publisher, pollMs: 10, logger: { info: () => {}, error: () => {} } });
});
beforeEach(() => {
  mail = [];
});
afterEach(() => shop.stopRunners());
afterAll(async () => {
  await relay.stop();
  await shop.close();
});

/** The warehouse: it writes a parcel for an action and takes it back for a compensation, once each. */
function warehouse(answer: "done" | "refused" | "none" = "done"): Inbox {
  return createInbox<PoolClient>(
    { database, consumer: "warehouse" },
    {
      "warehouse.ship": async (event, { tx }) => {
        const { sagaId = "", stepName = "" } = event;
        const direction = event.headers["saga_direction"] as Direction;
        const part = { participant: "warehouse", sagaId, stepName, direction };
        const sign = direction === "action" ? 1 : -1;
        const participated = await participate(database, tx, part, async () => {
          if (answer !== "refused") await tx.query("insert into parcel values ($1, $2)", [sagaId, sign]);
          return { sign };
        });
        if (answer === "none") return;
        await enqueue(tx, {
          type: "orders.shipped",
          key: event.key,
          payload: { ...participated, as: direction === "action" ? answer : "done" },
          sagaId,
          stepName,
          headers: { direction },
        });
      },
    },
  );
}

/** The saga's side of the replies. */
function replies(told: boolean[] = []): Inbox {
  return createInbox<PoolClient>(
    { database, consumer: "orders" },
    {
      "orders.shipped": async (event, { tx }) => {
        const { as, ...result } = event.data as { readonly as: "done" | "refused" };
        const direction = event.headers["direction"] as Direction;
        const { sagaId = "", stepName = "" } = event;
        told.push(await replyToSaga(database, tx, { sagaId, stepName, direction, as, result }));
      },
    },
  );
}

const order = (direction?: Direction): EventMessage | undefined =>
  mail.find(
    ({ type, headers }) => type === "warehouse.ship" && (direction ?? "action") === headers["saga_direction"],
  );
const reply = (direction: Direction = "action"): EventMessage | undefined =>
  mail.find(({ type, headers }) => type === "orders.shipped" && headers["direction"] === direction);

const stateOf = async (sagaId: string): Promise<string | undefined> =>
  (await sagaStatus(database, sagaId))?.state;

async function parcels(sagaId: string): Promise<readonly number[]> {
  const { rows } = await shop.pool.query<{ sign: number }>("select sign from parcel where saga_id = $1", [
    sagaId,
  ]);
  return rows.map(({ sign }) => sign);
}

/** Waits until the saga has woken up and gone to sleep again so many times. */
async function timeOuts(sagaId: string, count: number): Promise<void> {
  const times = new Set<string>();
  await until(async () => {
    const { rows } = await shop.pool.query<{ at: string }>(
      "select wake_at::text as at from idemkit.saga where saga_id = $1",
      [sagaId],
    );
    times.add(rows[0]?.at ?? "");
    return times.size > count;
  });
}

const ship = (options: Partial<MessageStepOptions<Checkout>> = {}) =>
  messageStep<Checkout, PoolClient>("ship", {
    command: ({ sagaId }) => ({ type: "warehouse.ship", key: sagaId, payload: {} }),
    compensation: ({ sagaId }) => ({ type: "warehouse.ship", key: sagaId, payload: {} }),
    ...options,
  });

/** Reserve here, ship by message, and maybe fail behind it. */
function shipping(
  name: string,
  options: Partial<MessageStepOptions<Checkout>> = {},
  fails = false,
): CheckoutSaga {
  const last = localStep<Checkout, null, PoolClient>("close", {
    run: () => (fails ? Promise.reject(new Error("broken")) : Promise.resolve(null)),
    retry: { ...retry, maxTries: 1 },
  });
  return defineSaga<Checkout, PoolClient>(name, {
    steps: [localStep("reserve", { run: reserve(1), compensate: reserve(-1), retry }), ship(options), last],
  });
}

async function started(definition: CheckoutSaga): Promise<string> {
  shop.run(definition, { pollMs: 10 });
  const { sagaId } = await startSaga(database, definition, { input: {}, sagaId: randomUUID() });
  return sagaId;
}

describe("a step by message", () => {
  test("sends its command with saga, step and direction, and goes on with the reply, however often both come", async () => {
    const told: boolean[] = [];
    const sagaId = await started(shipping("by-message"));
    const command = await until(() => order());
    expect(command).toMatchObject({ sagaId, stepName: "ship", headers: { saga_direction: "action" } });
    expect(await stateOf(sagaId)).toBe("running");
    const inbox = warehouse();
    await inbox.process(command);
    // Another message with the same command, as of a second try: only the saga's id and step can tell.
    await inbox.process({ ...command, eventId: randomUUID() });
    expect(await parcels(sagaId)).toEqual([1]);
    const all = await until(() => {
      const found = mail.filter(({ type }) => type === "orders.shipped");
      return found.length === 2 ? found : undefined;
    });
    for (const each of [...all, ...all]) await replies(told).process(each);
    await until(async () => (await stateOf(sagaId)) === "committed");
    expect(told).toEqual([true, false]);
    expect(mail.filter(({ type }) => type === "warehouse.ship")).toHaveLength(1);
  });

  test("is refused by its reply, and what came before it is undone", async () => {
    const before = await shop.reserved();
    const sagaId = await started(shipping("refused-by-message"));
    await warehouse("refused").process(await until(() => order()));
    await replies().process(await until(() => reply()));
    await until(async () => (await stateOf(sagaId)) === "compensated");
    expect(await shop.reserved()).toBe(before);
    expect(order("compensation")).toBeUndefined();
  });

  test("is undone by message, in reverse order, when a later step fails", async () => {
    const before = await shop.reserved();
    const sagaId = await started(shipping("undone-by-message", {}, true));
    await warehouse().process(await until(() => order()));
    await replies().process(await until(() => reply()));
    const command = await until(() => order("compensation"));
    // What comes before it waits for the reply.
    expect(await shop.reserved()).toBe(before + 1);
    await warehouse().process(command);
    await replies().process(await until(() => reply("compensation")));
    await until(async () => (await stateOf(sagaId)) === "compensated");
    expect(await parcels(sagaId)).toEqual([1, -1]);
    expect(await shop.reserved()).toBe(before);
  });

  test("that gets no reply in time is undone; where that comes first it blocks the action for ever", async () => {
    const told: boolean[] = [];
    const sagaId = await started(shipping("no-reply", { timeoutMs: 50 }));
    const action = await until(() => order());
    const compensation = await until(() => order("compensation"));
    await warehouse().process(compensation);
    await warehouse().process(action);
    expect(await parcels(sagaId)).toEqual([]);
    await replies(told).process(await until(() => reply()));
    expect(told).toEqual([false]);
    await replies(told).process(await until(() => reply("compensation")));
    await until(async () => (await stateOf(sagaId)) === "compensated");
    expect(await sagaStatus(database, sagaId)).toMatchObject({
      failure: { reason: "no-reply", step: "ship" },
    });
    expect(told).toEqual([false, true]);
  });

  test("keeps asking for a compensation's reply, and never gives it up", async () => {
    const sagaId = await started(shipping("mute", { timeoutMs: 30 }));
    await until(() => order("compensation"));
    await timeOuts(sagaId, 5);
    expect(await stateOf(sagaId)).toBe("compensating");
    await warehouse().process(await until(() => order("compensation")));
    await replies().process(await until(() => reply("compensation")));
    await until(async () => (await stateOf(sagaId)) === "compensated");
  });

  test("as a pivot that no message takes back is waited for without end", async () => {
    const before = await shop.reserved();
    const { compensation: _none, ...forGood } = ship().options as MessageStepOptions<Checkout>;
    const definition = defineSaga<Checkout, PoolClient>("pivot-by-message", {
      deadlineMs: 40,
      steps: [
        localStep("reserve", { run: reserve(1), compensate: reserve(-1), retry }),
        messageStep("ship", { ...forGood, timeoutMs: 20, pivot: true }),
      ],
    });
    const sagaId = await started(definition);
    const command = await until(() => order());
    await timeOuts(sagaId, 5);
    expect(await stateOf(sagaId)).toBe("running");
    expect(await shop.reserved()).toBe(before + 1);
    await warehouse().process(command);
    await replies().process(await until(() => reply()));
    await until(async () => (await stateOf(sagaId)) === "committed");
  });
});

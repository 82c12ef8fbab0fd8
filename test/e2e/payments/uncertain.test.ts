import { resolveEffect } from "idemkit";
import { fromPg } from "idemkit/pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/index.ts";
import { ask, fault } from "./client.ts";
import type { Answer } from "./client.ts";
import { movementsOf, newBuyer, shortTimes, startProviderProcess } from "./provider-stage.ts";
import type { Buyer, ProviderProcess } from "./provider-stage.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

/** It ignores keys and can't be asked. */
let blind: ProviderProcess;

beforeAll(async () => {
  blind = await startProviderProcess({ honoursKeys: false, lookUp: false });
});
afterAll(() => blind.close());

const words = [
  ["done", { effect: "charge", as: "done", result: { id: "ch_by_hand" } }, 1],
  // Said to be absent by hand, and it was not: that is whose word it is.
  ["absent", { effect: "charge", as: "absent" }, 2],
] as const;

describe.each(["off", "on"])("with background work %s, a charge that nobody can know of", (background) => {
  let stage: Stage;
  let url: string;

  beforeAll(async () => {
    // A database of its own: another service's rescuer would go on with what is resolved, at its own provider.
    stage = await openStage();
    const env = { PROVIDER_URL: blind.url, PROVIDER_HONOURS_KEYS: "false", BACKGROUND: background };
    ({ url } = await stage.startReplica({ env: { ...shortTimes, ...env } }));
  });
  afterAll(() => stage.close());

  const confirm = (buyer: Buyer, key: string): Promise<Answer> =>
    ask(`${url}/orders/${buyer.orderId}/payment/confirm`, { method: "POST", token: buyer.token, key });

  const statusOf = async ({ orderId, token }: Buyer): Promise<unknown> =>
    (await ask(`${url}/orders/${orderId}`, { token })).json["status"];

  test.each(words)("is uncertain, and goes on once it is resolved as %s", async (_as, word, charges) => {
    await blind.turn({ next: ["timeout-after"] });
    const buyer = await newBuyer(stage, url);
    const key = unique("key");
    const told = await confirm(buyer, key);
    expect(fault(told)).toBe("409 operation_uncertain");
    expect(told.json["retry"]).toBe("stop");
    expect((await confirm(buyer, key)).text).toBe(told.text);
    expect(await movementsOf(stage, blind, buyer.orderId)).toHaveLength(1);
    await resolveEffect(fromPg(stage.pool), String(told.json["operation_id"]), word);
    if (background === "on") await until(async () => (await statusOf(buyer)) === "paid");
    const paid = await confirm(buyer, key);
    expect([paid.status, paid.json["status"]]).toEqual([200, "paid"]);
    expect(await movementsOf(stage, blind, buyer.orderId)).toHaveLength(charges);
  });
});

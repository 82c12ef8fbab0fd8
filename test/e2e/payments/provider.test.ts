import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { signatureOf } from "../../../services/payments/src/provider/webhooks.ts";
import { until } from "../../support/index.ts";
import { anyUuid, ask, fault } from "./client.ts";
import type { Answer } from "./client.ts";
import { persist } from "./persist.ts";
import { movementsOf, newBuyer, shortTimes, startProviderProcess } from "./provider-stage.ts";
import type { Buyer, ProviderProcess } from "./provider-stage.ts";
import { openStage, unique } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

let stage: Stage;
let provider: ProviderProcess;
let service: Replica;

beforeAll(async () => {
  stage = await openStage();
  provider = await startProviderProcess();
  service = await stage.startReplica({ env: { ...shortTimes, PROVIDER_URL: provider.url } });
  await stage.pool.query("insert into public.stock (sku, on_hand) values ('teapot', 1000), ('few', 1)");
  await stage.pool.query("insert into public.stock (sku, on_hand, recalled) values ('unsafe', 1000, true)");
});
beforeEach(() => provider.turn({ next: [], honoursKeys: true }));
afterAll(async () => {
  await provider.close();
  await stage.close();
});

const confirm = (buyer: Buyer, key = unique("key"), url = service.url): Promise<Answer> =>
  ask(`${url}/orders/${buyer.orderId}/payment/confirm`, { method: "POST", token: buyer.token, key });

const refund = (buyer: Buyer, amount: string | undefined, key = unique("key")): Promise<Answer> =>
  ask(`${service.url}/orders/${buyer.orderId}/refund`, {
    token: buyer.token,
    key,
    body: amount === undefined ? {} : { amount },
  });

const statusOf = async ({ orderId, token }: Buyer): Promise<unknown> =>
  (await ask(`${service.url}/orders/${orderId}`, { token })).json["status"];

describe("POST /orders/{id}/payment/confirm", () => {
  test("charges the order's total once and replays its answer", async () => {
    const buyer = await newBuyer(stage, service.url);
    const key = unique("key");
    const first = await confirm(buyer, key);
    expect(first.status).toBe(200);
    expect(first.json).toMatchObject({
      id: anyUuid,
      orderId: buyer.orderId,
      amount: "21.0000",
      status: "paid",
    });
    const again = await confirm(buyer, key);
    expect([again.text, again.headers.get("idempotent-replayed")]).toEqual([first.text, "true"]);
    expect(await statusOf(buyer)).toBe("paid");
    expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(1);
    expect(fault(await confirm(buyer))).toBe("409 order_not_payable");
  });

  test.each(["timeout-after", "timeout-before", "cut-after", "cut-before", "error", "slow"] as const)(
    "charges once when the provider's first answer is %s",
    async (next) => {
      await provider.turn({ next: [next] });
      const buyer = await newBuyer(stage, service.url);
      expect((await confirm(buyer)).status).toBe(200);
      expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(1);
    },
  );

  test("stores the provider's no, and lets another key try again", async () => {
    await provider.turn({ next: ["refuse"] });
    const buyer = await newBuyer(stage, service.url);
    const key = unique("key");
    const first = await confirm(buyer, key);
    expect(fault(first)).toBe("422 charge_declined");
    expect((await confirm(buyer, key)).text).toBe(first.text);
    expect((await confirm(buyer)).status).toBe(200);
    expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(1);
  });

  test("finds the payment behind the second barrier when the record has expired", async () => {
    const buyer = await newBuyer(stage, service.url);
    const key = unique("key");
    const first = await confirm(buyer, key);
    await stage.pool.query({
      text: "delete from idemkit.idempotency_record where scope = $1",
      values: [buyer.sub],
    });
    const again = await confirm(buyer, key);
    expect([again.status, again.json]).toEqual([200, first.json]);
    expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(1);
  });

  test("charges once for fifty requests at once under ten keys", async () => {
    const buyer = await newBuyer(stage, service.url);
    const keys = Array.from({ length: 10 }, () => unique("key"));
    const url = `${service.url}/orders/${buyer.orderId}/payment/confirm`;
    const sent = Array.from({ length: 50 }, (_, n) =>
      persist(url, { method: "POST", token: buyer.token, key: keys[n % 10] ?? "" }),
    );
    const finals = (await Promise.all(sent)).map(({ final }) => final);
    const paid = finals.filter(({ status }) => status === 200);
    expect(new Set(paid.map(({ text }) => text)).size).toBe(1);
    expect(new Set(finals.filter(({ status }) => status !== 200).map(fault))).toEqual(
      new Set(
        ["409 payment_in_progress", "409 order_not_payable"].filter((each) =>
          finals.some((one) => fault(one) === each),
        ),
      ),
    );
    expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(1);
  });

  test("is only for the order's owner", async () => {
    const buyer = await newBuyer(stage, service.url);
    const other = await newBuyer(stage, service.url);
    expect(fault(await confirm({ ...buyer, token: other.token }))).toBe("403 order_foreign id");
    expect(fault(await confirm({ ...buyer, orderId: randomUUID() }))).toBe("404 order_not_found id");
    expect(
      fault(
        await ask(`${service.url}/orders/${buyer.orderId}/payment/confirm`, {
          method: "POST",
          token: buyer.token,
        }),
      ),
    ).toBe("400 idempotency_key_missing");
  });
});

describe("refunds", () => {
  test("may share their key with the confirm, and give back in parts up to the payment", async () => {
    const buyer = await newBuyer(stage, service.url);
    const key = unique("key");
    const { json: payment } = await confirm(buyer, key);
    const part = await refund(buyer, "5.00", key);
    expect(part.json).toMatchObject({ paymentId: payment["id"], amount: "5.0000", status: "refunded" });
    expect(await statusOf(buyer)).toBe("partially_refunded");
    expect(fault(await refund(buyer, "16.01"))).toBe("422 refund_exceeds_payment amount");
    const rest = await ask(`${service.url}/payments/${String(payment["id"])}/refund`, {
      method: "POST",
      token: buyer.token,
      key,
    });
    expect(rest.json).toMatchObject({ amount: "16.0000" });
    expect(await statusOf(buyer)).toBe("refunded");
    expect(fault(await refund(buyer, undefined))).toBe("422 payment_refunded amount");
    expect((await refund(buyer, "5.00", key)).text).toBe(part.text);
    expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(3);
  });

  test("never exceed the payment together, sent at the same time under different keys", async () => {
    const buyer = await newBuyer(stage, service.url);
    await confirm(buyer);
    const answers = await Promise.all(Array.from({ length: 12 }, () => refund(buyer, "4.00")));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(new Set(answers.filter(({ status }) => status !== 200).map(fault))).toEqual(
      new Set(["422 refund_exceeds_payment amount"]),
    );
    const moved = await movementsOf(stage, provider, buyer.orderId);
    expect(moved.filter(({ kind }) => kind === "refund")).toHaveLength(5);
  });

  test("free their amount when the provider says no", async () => {
    const buyer = await newBuyer(stage, service.url);
    await confirm(buyer);
    await provider.turn({ next: ["refuse"] });
    expect(fault(await refund(buyer, "21.00"))).toBe("422 refund_declined");
    expect((await refund(buyer, "21.00")).status).toBe(200);
  });

  test("need a payment through the provider", async () => {
    const buyer = await newBuyer(stage, service.url);
    expect(fault(await refund(buyer, "1.00"))).toBe("409 order_not_paid");
    expect(fault(await refund(buyer, "0"))).toBe("400 validation_failed amount");
  });
});

describe("POST /checkouts", () => {
  const checkOut = async (buyer: Buyer): Promise<Record<string, unknown>> => {
    const started = await ask(`${service.url}/checkouts`, {
      token: buyer.token,
      key: unique("key"),
      body: { orderId: buyer.orderId },
    });
    expect(started.status).toBe(202);
    const url = `${service.url}${started.headers.get("location")}`;
    return until(async () => {
      const { json } = await ask(url, { token: buyer.token });
      return ["committed", "compensated", "uncertain"].includes(String(json["state"])) ? json : undefined;
    });
  };

  test("reserves, charges and confirms", async () => {
    const buyer = await newBuyer(stage, service.url);
    expect(await checkOut(buyer)).toMatchObject({ state: "committed" });
    expect(await statusOf(buyer)).toBe("paid");
    expect(await movementsOf(stage, provider, buyer.orderId)).toHaveLength(1);
  });

  test("refunds and releases when the sale can't be confirmed", async () => {
    const buyer = await newBuyer(stage, service.url, "unsafe");
    expect(await checkOut(buyer)).toMatchObject({ state: "compensated", failure: { code: "item_recalled" } });
    expect(await statusOf(buyer)).toBe("pending");
    expect((await movementsOf(stage, provider, buyer.orderId)).map(({ kind }) => kind)).toEqual([
      "charge",
      "refund",
    ]);
    const { rows } = await stage.pool.query(
      "select reserved, on_hand from public.stock where sku = 'unsafe'",
    );
    expect(rows).toEqual([{ reserved: 0, on_hand: 1000 }]);
  });

  test("charges nothing where the stock is short", async () => {
    const buyer = await newBuyer(stage, service.url, "few");
    expect(await checkOut(buyer)).toMatchObject({ state: "compensated", failure: { code: "out_of_stock" } });
    expect(await movementsOf(stage, provider, buyer.orderId)).toEqual([]);
  });
});

test("the provider's webhooks are signed, and doubled and reordered on request", async () => {
  const received: { id: string; valid: boolean }[] = [];
  const secret = "whsec_c2VjcmV0";
  const listener = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const id = String(request.headers["webhook-id"]);
      const expected = signatureOf(secret, id, String(request.headers["webhook-timestamp"]), body);
      const { data } = JSON.parse(body) as { data: { key: string } };
      received.push({ id: data.key, valid: request.headers["webhook-signature"] === expected });
      response.end();
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const webhookUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/`;
  const told = await startProviderProcess({
    webhookUrl,
    webhookSecret: secret,
    webhooksDoubled: true,
    webhooksReordered: true,
  });
  for (const key of ["first", "second"]) {
    await ask(`${told.url}/charges`, { key, body: { amount: "1", currency: "EUR", reference: key } });
  }
  await until(() => received.length === 4);
  expect(received.every(({ valid }) => valid)).toBe(true);
  expect(received.map(({ id }) => id).toSorted()).toEqual(["first", "first", "second", "second"]);
  await told.close();
  listener.close();
});

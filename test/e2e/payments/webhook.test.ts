import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signatureOf } from "../../../services/payments/src/provider/webhooks.ts";
import { until } from "../../support/index.ts";
import { ask } from "./client.ts";
import type { Answer } from "./client.ts";
import { failCommits } from "./event-rows.ts";
import { newBuyer, shortTimes, startProviderProcess } from "./provider-stage.ts";
import type { ProviderProcess } from "./provider-stage.ts";
import { openStage, unique } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

const secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHRlc3RzIG9ubHk=";

let stage: Stage;
let provider: ProviderProcess;
let service: Replica;
let url: string;

beforeAll(async () => {
  [stage, provider] = await Promise.all([openStage(), startProviderProcess({ webhookSecret: secret })]);
  const env = { PROVIDER_URL: provider.url, PROVIDER_WEBHOOK_SECRET: secret, ...shortTimes };
  service = await stage.startReplica({ env });
  ({ url } = service);
});
afterAll(() => Promise.all([stage.close(), provider.close()]));

interface Delivery {
  readonly id?: string;
  readonly ageSeconds?: number;
  readonly signedBody?: string;
  readonly signedWith?: string;
}

/** Sends an event as the provider does, or nearly. */
const deliver = (event: unknown, delivery: Delivery = {}): Promise<Answer> => {
  const { id = unique("evt"), ageSeconds = 0, signedWith = secret } = delivery;
  const body = JSON.stringify(event);
  const timestamp = String(Math.floor(Date.now() / 1000) - ageSeconds);
  return ask(`${url}/webhooks/provider`, {
    body,
    headers: {
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": signatureOf(signedWith, id, timestamp, delivery.signedBody ?? body),
    },
  });
};

const chargeOf = (charge: string, amount = "21.00") => ({
  type: "charge.succeeded",
  data: { kind: "charge", id: charge, key: "k", amount, currency: "EUR", reference: unique("payment") },
});
const refundOf = (charge: string, amount: string) => ({
  type: "refund.succeeded",
  data: { kind: "refund", id: unique("re"), key: "k", amount, currency: "EUR", reference: charge },
});

/** The statuses that webhooks were answered with, as the service's log has them. */
const answered = (): readonly number[] => {
  const lines = service.process.lines
    .filter((line) => line.startsWith("{"))
    .map(
      (line) => JSON.parse(line) as { reqId?: string; req?: { url?: string }; res?: { statusCode: number } },
    );
  const ids = new Set(lines.filter(({ req }) => req?.url === "/webhooks/provider").map(({ reqId }) => reqId));
  return lines.flatMap(({ reqId, res }) => (res !== undefined && ids.has(reqId) ? [res.statusCode] : []));
};

interface Statement {
  readonly status: string;
  readonly charged: string | null;
  readonly refunded: string;
}

const statementOf = async (charge: string): Promise<Statement | undefined> => {
  const { rows } = await stage.pool.query<Statement>({
    text: "select status, charged, refunded from public.provider_statement where charge_id = $1",
    values: [charge],
  });
  return rows[0];
};

describe("a webhook of the provider", () => {
  test("that comes five times at once changes one thing once", async () => {
    const charge = unique("ch");
    const [event, id] = [refundOf(charge, "5.00"), unique("evt")];
    const answers = await Promise.all(Array.from({ length: 5 }, () => deliver(event, { id })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const outcomes = answers.map(({ json }) => String(json["outcome"]));
    expect(outcomes.toSorted()).toEqual(["duplicate", "duplicate", "duplicate", "duplicate", "executed"]);
    expect(await statementOf(charge)).toMatchObject({ refunded: "5.0000" });
  });

  test("comes to the same end in whatever order it comes", async () => {
    const [straight, turned] = [unique("ch"), unique("ch")];
    for (const event of [chargeOf(straight), refundOf(straight, "5.00")]) {
      expect((await deliver(event)).status).toBe(200);
    }
    expect((await deliver(refundOf(turned, "5.00"))).status).toBe(200);
    expect(await statementOf(turned)).toEqual({
      status: "charge_unknown",
      charged: null,
      refunded: "5.0000",
    });
    expect((await deliver(chargeOf(turned))).status).toBe(200);
    const end = { status: "partially_refunded", charged: "21.0000", refunded: "5.0000" };
    expect([await statementOf(straight), await statementOf(turned)]).toEqual([end, end]);
  });

  test("is told of a real charge and refund, doubled and the wrong way round", async () => {
    const before = answered().length;
    await provider.turn({
      webhookUrl: `${url}/webhooks/provider`,
      webhooksDoubled: true,
      webhooksReordered: true,
    });
    const { token, orderId } = await newBuyer(stage, url);
    const paid = await ask(`${url}/orders/${orderId}/payment/confirm`, {
      token,
      key: unique("key"),
      body: {},
    });
    const charge = String(paid.json["externalPaymentId"]);
    // The charge's webhook is held back until the refund's has been sent.
    await ask(`${url}/orders/${orderId}/refund`, { token, key: unique("key"), body: { amount: "5.00" } });
    await until(() => answered().length >= before + 4, { what: "four answers to webhooks" });
    expect(answered().slice(before)).toEqual([200, 200, 200, 200]);
    expect(await statementOf(charge)).toEqual({
      status: "partially_refunded",
      charged: "21.0000",
      refunded: "5.0000",
    });
    await provider.turn({ webhookUrl: "" });
  });

  test.each([
    ["under another secret", { signedWith: "whsec_b3RoZXI=" }],
    ["over another body", { signedBody: "{}" }],
    ["ten minutes ago", { ageSeconds: 600 }],
  ])("is refused where it was signed %s", async (_how, delivery) => {
    const charge = unique("ch");
    expect((await deliver(chargeOf(charge), delivery)).status).toBe(401);
    expect(await statementOf(charge)).toBeUndefined();
  });

  test("of a type that nobody knows is taken", async () => {
    expect(await deliver({ type: "dispute.opened", data: {} })).toMatchObject({ status: 200 });
  });

  test("is not acknowledged before its transaction has committed", async () => {
    const charge = unique("ch");
    await deliver(chargeOf(charge));
    const holder = await stage.pool.connect();
    await holder.query("begin");
    await holder.query({
      text: "select 1 from public.provider_statement where charge_id = $1 for update",
      values: [charge],
    });
    let isAnswered = false;
    const answer = deliver(refundOf(charge, "5.00")).finally(() => {
      isAnswered = true;
    });
    await until(async () => {
      const { rows } = await stage.pool.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length > 0;
    });
    expect(isAnswered).toBe(false);
    await holder.query("commit");
    holder.release();
    expect((await answer).json).toEqual({ outcome: "executed" });
  });

  test("whose commit fails is answered with 500, and takes effect when it is sent again", async () => {
    const charge = unique("doomed");
    const [event, id] = [chargeOf(charge), unique("evt")];
    const heal = await failCommits(stage, "provider_statement", "new.charge_id like 'doomed%'");
    expect((await deliver(event, { id })).status).toBe(500);
    expect(await statementOf(charge)).toBeUndefined();
    await heal();
    expect((await deliver(event, { id })).json).toEqual({ outcome: "executed" });
    expect(await statementOf(charge)).toMatchObject({ status: "charged" });
  });

  test("has nowhere to go where the service has no secret, and leaves the other routes their parsers", async () => {
    const { url: without } = await stage.startReplica();
    expect((await ask(`${without}/webhooks/provider`, { body: {} })).status).toBe(404);
    const token = await stage.token("alice");
    const headers = { "content-type": "text/plain" };
    const call = { token, key: unique("key"), body: "{}", headers };
    expect((await ask(`${url}/orders`, call)).status).toBe(415);
  });
});

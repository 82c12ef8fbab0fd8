import { createPool } from "../../support/index.ts";
import { fromPg } from "idemkit/pg";
import { standardWebhooks, stripe, webhook } from "idemkit/webhook";
import { expect, test } from "vitest";

const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

test("Standard Webhooks: the example of its specification verifies, and the id is the header's", async () => {
  const body = '{"test": 2432232314}';
  const request = {
    body: Buffer.from(body),
    nowSeconds: 1_614_265_330,
    header: (name: string): string | undefined =>
      ({
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1a,xyz v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
      })[name],
  };
  expect(standardWebhooks(standardSecret).verify(request)).toEqual({
    eventId: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  });
  expect(
    standardWebhooks(standardSecret).verify({ ...request, nowSeconds: 1_614_265_330 + 301 }),
  ).toBeUndefined();
  expect(
    standardWebhooks(standardSecret).verify({ ...request, body: Buffer.from(`${body} `) }),
  ).toBeUndefined();
  expect(standardWebhooks("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").verify(request)).toBeUndefined();
});

test("a webhook without a verifier or with a secret that can be guessed is a start-up error", () => {
  const options = { database: fromPg(createPool("postgres://nowhere.invalid")), consumer: "psp" };
  expect(() => webhook(options as never, () => {})).toThrow(/verify/);
  expect(() => stripe("")).toThrow(/secret/);
  expect(() => stripe([])).toThrow(/secret/);
  expect(() => standardWebhooks("whsec_c2hvcnQ=")).toThrow(/16 bytes/);
  expect(() => standardWebhooks(standardSecret, { source: "" })).toThrow(/source must be a text/);
  expect(standardWebhooks(standardSecret, { source: "acme" }).source).toBe("acme");
});

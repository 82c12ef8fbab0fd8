import { randomUUID } from "node:crypto";
import { newCharge, newCustomer } from "./customer.ts";
import type { Scene } from "./scene.ts";

/** Lines to paste into another terminal; each works as it stands, and sent again it is answered with a replay. */
export const printCurlLines = async (scene: Scene): Promise<void> => {
  const run = randomUUID().slice(0, 8);
  const customer = await newCustomer(scene, `you-${run}`);
  const charge = await newCharge(customer, "curl");
  // Of an order of its own: one that is paid can't be confirmed.
  const { orderId } = await newCharge(customer, "confirm");
  const order = { items: [{ sku: "teapot", quantity: 2, unitPrice: "10.50" }], currency: "EUR" };
  const post = (path: string, key: string, body: unknown): string =>
    [
      `curl -i ${scene.url}${path} -H 'Authorization: Bearer ${customer.token}'`,
      `-H 'Content-Type: application/json' -H 'Idempotency-Key: ${key}' -d '${JSON.stringify(body)}'`,
    ].join(" ");
  for (const line of [
    "",
    "Try it; a line sent twice is answered twice and executed once:",
    "",
    post("/orders", `order-${run}`, order),
    "",
    post("/payments", `charge-${run}`, charge),
    "",
    `curl -i ${scene.url}/orders/${charge["orderId"]} -H 'Authorization: Bearer ${customer.token}'`,
    "",
    `curl -s ${scene.url}/openapi.json`,
    "",
    `curl -i -X POST ${scene.url}/orders/${orderId}/payment/confirm -H 'Authorization: Bearer ${customer.token}' -H 'Idempotency-Key: confirm-${run}'`,
    "",
    `curl -s ${scene.providerUrl}/ledger   # the provider's own books`,
    "",
    "Another token: npm run --silent token -- SUB [ROLE...].  Ctrl-C stops everything.",
  ]) {
    scene.say(line);
  }
};

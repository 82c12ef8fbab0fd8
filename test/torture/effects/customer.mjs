// What customers do, each through the client: confirm, refund in parts at the same time, check out.
import { randomUUID } from "node:crypto";

import { idempotentFetch } from "idemkit/client";

/**
 * @typedef {object} Operation one business operation and what its customer was told
 * @property {"confirm" | "refund" | "checkout"} kind
 * @property {string} orderId
 * @property {number} status 0 while there is no answer
 * @property {string} code
 */

/**
 * A customer whose requests go to any of the processes, another one with each try.
 * @param {import("./world.mjs").World} world
 * @param {ReturnType<typeof import("./random.mjs").randomOf>} random
 * @param {Operation[]} operations
 * @returns {Promise<() => Promise<void>>} a round of what it does
 */
export async function customerOf(world, random, operations) {
  const sub = `customer-${randomUUID().slice(0, 8)}`;
  const token = await world.token(sub);
  const send = idempotentFetch({
    fetch: (path, init) =>
      fetch(`${random.pick(world.services).url}${path.replace("http://service", "")}`, init),
    tryTimeoutMs: 4000,
    totalTimeoutMs: 60_000,
    backoffBaseMs: 50,
    backoffMaxMs: 500,
  });

  /**
   * @param {string} path
   * @param {unknown} body
   * @returns {Promise<{ status: number, json: Record<string, unknown> }>}
   */
  async function post(path, body) {
    const response = await send(`http://service${path}`, {
      method: "POST",
      key: randomUUID(),
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, json: /** @type {Record<string, unknown>} */ (await response.json()) };
  }

  /**
   * @param {Operation["kind"]} kind
   * @param {string} orderId
   * @param {string} path
   * @param {unknown} body
   */
  async function operate(kind, orderId, path, body) {
    /** @type {Operation} */
    const operation = { kind, orderId, status: 0, code: "" };
    operations.push(operation);
    try {
      const { status, json } = await post(path, body);
      Object.assign(operation, { status, code: /** @type {{ code?: string }} */ (json).code ?? "" });
    } catch (error) {
      operation.code = error instanceof Error ? error.message : String(error);
    }
    return operation;
  }

  return async () => {
    const sku = random.pick(["teapot", "teapot", "unsafe"]);
    const order = { items: [{ sku, quantity: 2, unitPrice: "10.50" }], currency: "EUR" };
    const created = await post("/orders", order);
    const { id } = created.json;
    const orderId = String(id);
    if (created.status !== 201) return;
    if (random.chance(0.4)) {
      await operate("checkout", orderId, "/checkouts", { orderId });
      return;
    }
    const { status } = await operate("confirm", orderId, `/orders/${orderId}/payment/confirm`, {});
    if (status !== 200 || random.chance(0.4)) return;
    const amounts = Array.from({ length: random.between(1, 4) }, () => `${random.between(1, 12)}.00`);
    await Promise.all(
      amounts.map((amount) => operate("refund", orderId, `/orders/${orderId}/refund`, { amount })),
    );
  };
}

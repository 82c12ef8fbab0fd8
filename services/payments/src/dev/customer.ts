import type { Scene } from "./scene.ts";

/** What came back from the service, with the parts the transcript shows. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** One customer's client: it sends what it is told to, with its token, and retries nothing by itself. */
export interface Customer {
  readonly sub: string;
  readonly token: string;
  post(path: string, body: unknown, key?: string): Promise<Answer>;
}

export const newCustomer = async ({ url, keys, stopped }: Scene, sub: string): Promise<Customer> => {
  const token = await keys.sign(sub, ["customer"]);
  const post: Customer["post"] = async (path, body, key) => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      signal: stopped,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(key === undefined ? {} : { "idempotency-key": key }),
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { sub, token, post };
};

/** A new order of 21.00 EUR, and the charge that pays for it. */
export const newCharge = async (customer: Customer, name: string): Promise<Record<string, string>> => {
  const items = [{ sku: "teapot", quantity: 2, unitPrice: "10.50" }];
  const answer = await customer.post("/orders", { items, currency: "EUR" }, `order-${name}-${customer.sub}`);
  if (answer.status !== 201) {
    throw new Error(`POST /orders answered ${answer.status}: ${answer.text}`);
  }
  const { id } = JSON.parse(answer.text) as { id: string };
  return {
    orderId: id,
    provider: "acme-pay",
    externalPaymentId: `${name}-${customer.sub}`,
    amount: "21.00",
    currency: "EUR",
  };
};

import { expect } from "vitest";
import { unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

/** What came back, body and all. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export interface Call {
  readonly method?: string;
  readonly token?: string;
  readonly key?: string;
  /** Sent as JSON; a string is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One request, sent once; rejects where no answer came. */
export const ask = async (url: string, call: Call = {}): Promise<Answer> => {
  const { method = call.body === undefined ? "GET" : "POST", token, key, body, headers = {} } = call;
  const response = await fetch(url, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
};

const parsed = (text: string): Record<string, unknown> => {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
};

/** A refusal in short, such as `400 validation_failed items[0].sku`; anything but problem details is shown whole. */
export const fault = ({ status, headers, json, text }: Answer): string => {
  const { code, field } = json as { readonly code?: string; readonly field?: string };
  const isProblem = headers.get("content-type")?.includes("application/problem+json") === true;
  if (!isProblem || json["status"] !== status) {
    return `no problem details: ${status} ${text}`;
  }
  return [status, code ?? "no code", ...(field === undefined ? [] : [field])].join(" ");
};

export const anyUuid: unknown = expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/u);
export const anyTime: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/u);

/** A charge that fits its order. */
export interface ChargeBody {
  readonly orderId: string;
  readonly provider: string;
  readonly externalPaymentId: string;
  readonly amount: string;
  readonly currency: string;
}

export const orderBody = {
  items: [{ sku: "teapot", quantity: 2, unitPrice: "10.50" }],
  currency: "EUR",
} as const;

/** A customer of their own with a token and an order of 21.00 EUR; the charge of it has not been sent. */
export interface Shopper {
  readonly sub: string;
  readonly token: string;
  readonly charge: ChargeBody;
}

export const newShopper = async (stage: Stage, url: string): Promise<Shopper> => {
  const sub = unique("shopper");
  const token = await stage.token(sub);
  return { sub, token, charge: await newCharge(url, token) };
};

/** Another order of the token's customer, and its charge. */
export const newCharge = async (url: string, token: string): Promise<ChargeBody> => {
  const order = await ask(`${url}/orders`, { token, key: unique("order"), body: orderBody });
  if (order.status !== 201) {
    throw new Error(`POST /orders answered ${order.status}: ${order.text}`);
  }
  return {
    orderId: String(order.json["id"]),
    provider: "acme-pay",
    externalPaymentId: unique("external"),
    amount: "21.00",
    currency: "EUR",
  };
};

/** Payments in the database, of one order or of all. */
export const countPayments = async (stage: Stage, orderId?: string): Promise<number> => {
  const { rows } = await stage.pool.query<{ count: number }>({
    text: "select count(*)::int as count from public.payment where $1::uuid is null or order_id = $1",
    values: [orderId ?? null],
  });
  return rows[0]?.count ?? -1;
};

import { MONEY_PATTERN } from "../../../core/money.ts";

// JSON Schema, read twice: Fastify validates requests with it and the OpenAPI document publishes it. A
// `description` beside a `pattern` doubles as the message of a value that doesn't match.

/** One line of visible text. PostgreSQL refuses NUL, and a lone surrogate would be stored as another character. */
const text = (maxLength: number) => ({
  type: "string",
  minLength: 1,
  maxLength,
  pattern: "^[^\\p{Cc}\\p{Cs}]*[^\\p{Cc}\\p{Cs}\\s][^\\p{Cc}\\p{Cs}]*$",
  description: "must be visible text without control characters",
});

const money = {
  type: "string",
  pattern: MONEY_PATTERN,
  maxLength: 20,
  description: "must be a decimal string of at most 15 digits and at most four places",
  examples: ["10.50"],
} as const;

const currency = {
  type: "string",
  pattern: "^[A-Z]{3}$",
  description: "must be an ISO 4217 currency code in capitals",
  examples: ["EUR"],
} as const;

const uuid = {
  type: "string",
  pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
  description: "must be a UUID",
} as const;

const item = {
  type: "object",
  additionalProperties: false,
  required: ["sku", "quantity", "unitPrice"],
  properties: {
    sku: text(64),
    quantity: { type: "integer", minimum: 1, maximum: 1_000_000 },
    unitPrice: money,
  },
};

export const createOrderBody = {
  type: "object",
  additionalProperties: false,
  required: ["items", "currency"],
  properties: { items: { type: "array", minItems: 1, maxItems: 200, items: item }, currency },
};

export const chargeBody = {
  type: "object",
  additionalProperties: false,
  required: ["orderId", "provider", "externalPaymentId", "amount", "currency"],
  properties: { orderId: uuid, provider: text(64), externalPaymentId: text(255), amount: money, currency },
};

export const orderParams = {
  type: "object",
  required: ["id"],
  properties: { id: uuid },
};

export const orderAnswer = {
  type: "object",
  required: ["id", "customerId", "status", "items", "total", "currency", "createdAt"],
  properties: {
    id: uuid,
    customerId: { type: "string" },
    status: { type: "string", enum: ["pending", "paid", "partially_refunded", "refunded"] },
    items: { type: "array", items: item },
    total: money,
    currency,
    createdAt: { type: "string", format: "date-time" },
  },
};

export const paymentAnswer = {
  type: "object",
  required: ["id", "orderId", "customerId", "provider", "externalPaymentId", "amount", "currency", "status"],
  properties: {
    id: uuid,
    orderId: uuid,
    customerId: { type: "string" },
    provider: { type: "string" },
    externalPaymentId: { type: "string" },
    amount: money,
    currency,
    status: { type: "string", enum: ["pending", "charging", "paid", "declined", "reversed"] },
  },
};

/** Without an amount, all that is left. */
export const refundBody = {
  type: ["object", "null"],
  additionalProperties: false,
  properties: { amount: money },
};

export const refundAnswer = {
  type: "object",
  required: ["id", "paymentId", "orderId", "provider", "externalRefundId", "amount", "currency", "status"],
  properties: {
    id: uuid,
    paymentId: uuid,
    orderId: uuid,
    provider: { type: "string" },
    externalRefundId: { type: "string" },
    amount: money,
    currency,
    status: { type: "string", enum: ["refunded"] },
  },
};

/** A command that needs no more than its address. */
export const emptyBody = { type: ["object", "null"], additionalProperties: false, properties: {} };

export const checkoutBody = {
  type: "object",
  additionalProperties: false,
  required: ["orderId"],
  properties: { orderId: uuid },
};

export const checkoutAnswer = {
  type: "object",
  required: ["id", "orderId", "state"],
  properties: {
    id: uuid,
    orderId: uuid,
    state: { type: "string", enum: ["running", "compensating", "uncertain", "committed", "compensated"] },
    failure: { description: "why it was undone" },
  },
};

const count = { type: "integer", minimum: 0 };
const milliseconds = { type: "number", minimum: 0 };

export const readinessAnswer = {
  type: "object",
  required: ["status", "outbox"],
  properties: {
    status: { const: "ready" },
    outbox: {
      type: "object",
      description: "events on their way to the relay",
      required: ["oldestUnpublishedMs", "unpublished", "parkedKeys", "oldestSnapshotMs"],
      properties: {
        oldestUnpublishedMs: milliseconds,
        unpublished: count,
        parkedKeys: count,
        oldestSnapshotMs: milliseconds,
      },
    },
  },
};

export const problemAnswer = {
  type: "object",
  description: "RFC 9457 problem details",
  required: ["title", "status", "code"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    code: { type: "string", description: "stable; compare by it" },
    field: { type: "string", description: "the input at fault" },
    errors: {
      type: "array",
      items: { type: "object", properties: { field: { type: "string" }, message: { type: "string" } } },
    },
    operation_id: { type: "string", description: "of the operation with this Idempotency-Key" },
    retry: { type: "string", enum: ["same-key", "new-key", "stop"] },
  },
};

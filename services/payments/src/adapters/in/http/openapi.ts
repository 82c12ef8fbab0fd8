import { chargeBody, createOrderBody, orderAnswer, paymentAnswer, problemAnswer } from "./schemas.ts";

const json = (name: string) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } });

const answer = (description: string, name: string, headers: object = {}) => ({
  description,
  headers,
  content: json(name),
});

const header = (description: string) => ({ description, schema: { type: "string" } });

const replayed = {
  "Idempotent-Replayed": header(
    "`true` where this is the stored answer of an earlier request with the same key",
  ),
};

const refusal = (description: string) => ({
  description,
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
});

const comeBack = (description: string) => ({
  ...refusal(description),
  headers: { "Retry-After": header("seconds until the request should be repeated with the same key") },
});

const refusals = {
  "400": refusal("`validation_failed`: `field` names the input at fault"),
  "401": refusal("`token_missing`, `token_invalid`"),
  "403": refusal("`role_missing`, `order_foreign`"),
  "503": comeBack("`service_unavailable`, `idempotency_unavailable`, `issuer_unavailable`"),
};

const protectedRefusals = {
  ...refusals,
  "400": refusal("`validation_failed`, `idempotency_key_missing`, `idempotency_key_malformed`"),
  "413": refusal("`request_refused`: the body is too large"),
  "415": refusal("`request_refused`: the body isn't JSON"),
};

const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  required: true,
  description:
    "One for each business operation, kept through its retries: 1 to 255 printable ASCII characters.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

const body = (name: string) => ({ required: true, content: json(name) });

/** The description of the API, as `/openapi.json` serves it. */
export const openApiDocument = {
  openapi: "3.1.0",
  info: {
    title: "Payments",
    version: "1",
    description: "Orders and payments that take effect once, however often a command arrives.",
  },
  security: [{ bearer: [] }],
  paths: {
    "/orders": {
      post: {
        operationId: "createOrder",
        summary: "Creates an order; the customer is the token's `sub`.",
        parameters: [idempotencyKey],
        requestBody: body("CreateOrder"),
        responses: {
          "201": answer("The order, or on a repeat within 72 hours the stored answer.", "Order", {
            ...replayed,
            Location: header("the order's address"),
          }),
          ...protectedRefusals,
          "409": comeBack("`idempotency_key_reused`, `operation_in_progress`"),
        },
      },
    },
    "/orders/{id}": {
      get: {
        operationId: "getOrder",
        summary: "Reads an order: its owner may, and an admin.",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string", format: "uuid" } }],
        responses: { "200": answer("The order.", "Order"), ...refusals, "404": refusal("`order_not_found`") },
      },
    },
    "/payments": {
      post: {
        operationId: "charge",
        summary: "Charges an order's total.",
        parameters: [idempotencyKey],
        requestBody: body("Charge"),
        responses: {
          "201": answer(
            "The payment, or on a repeat within 48 hours the stored answer.",
            "Payment",
            replayed,
          ),
          "200": answer(
            "The same charge came before under another key: the payment it made.",
            "Payment",
            replayed,
          ),
          ...protectedRefusals,
          "404": refusal("`order_not_found`"),
          "409": comeBack("`payment_conflict`, `idempotency_key_reused`, `operation_in_progress`"),
          "422": refusal("`amount_mismatch`, `currency_mismatch`"),
        },
      },
    },
    "/health": {
      get: {
        operationId: "health",
        summary: "The process answers.",
        security: [],
        responses: { "200": { description: "Alive." } },
      },
    },
    "/ready": {
      get: {
        operationId: "ready",
        summary: "The process can serve commands: its database answers and it isn't stopping.",
        security: [],
        responses: { "200": { description: "Ready." }, "503": comeBack("`not_ready`") },
      },
    },
    "/openapi.json": {
      get: {
        operationId: "openapi",
        summary: "This document.",
        security: [],
        responses: { "200": { description: "The document." } },
      },
    },
  },
  components: {
    securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
    schemas: {
      CreateOrder: createOrderBody,
      Order: orderAnswer,
      Charge: chargeBody,
      Payment: paymentAnswer,
      Problem: problemAnswer,
    },
  },
} as const;

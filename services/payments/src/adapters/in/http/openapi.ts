import { providerPaths } from "./openapi-provider.ts";
import {
  chargeBody,
  checkoutAnswer,
  checkoutBody,
  createOrderBody,
  emptyBody,
  orderAnswer,
  paymentAnswer,
  problemAnswer,
  readinessAnswer,
  refundAnswer,
  refundBody,
} from "./schemas.ts";
import {
  answer,
  body,
  comeBack,
  header,
  idempotencyKey,
  protectedRefusals,
  refusal,
  refusals,
  replayed,
} from "./openapi-parts.ts";

/** What this process has beside orders and payments. */
export interface Described {
  readonly provider: boolean;
  readonly webhooks: boolean;
}

const webhookPaths = {
  "/webhooks/provider": {
    post: {
      operationId: "providerWebhook",
      summary: "Takes an event of the provider, signed as Standard Webhooks say; a repeat changes nothing.",
      security: [],
      responses: {
        "200": { description: "It is in the database." },
        "401": refusal("`webhook_signature_invalid`"),
        "503": comeBack("`inbox_unavailable`"),
      },
    },
  },
};

/** The description of the API, as `/openapi.json` serves it: the routes that are there, and no others. */
export const openApiDocument = ({ provider, webhooks }: Described) => ({
  ...base,
  paths: { ...base.paths, ...(provider ? providerPaths : {}), ...(webhooks ? webhookPaths : {}) },
});

const base = {
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
        summary:
          "The process can serve commands: its database answers and it isn't stopping. Tells what waits in the outbox.",
        security: [],
        responses: { "200": answer("Ready.", "Readiness"), "503": comeBack("`not_ready`") },
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
      Nothing: emptyBody,
      RefundRequest: refundBody,
      Refund: refundAnswer,
      CheckoutRequest: checkoutBody,
      Checkout: checkoutAnswer,
      Readiness: readinessAnswer,
      Problem: problemAnswer,
    },
  },
} as const;

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

const id = (of: string) => ({
  name: "id",
  in: "path",
  required: true,
  description: `the ${of}'s`,
  schema: { type: "string", format: "uuid" },
});

const unsettled = "`operation_uncertain`: nobody knows what the provider did, and a person has to find out";

const optional = (name: string) => ({ ...body(name), required: false });

const refund = (of: "order" | "payment") => ({
  post: {
    operationId: of === "order" ? "refundOrder" : "refundPayment",
    summary: `Gives back an ${of === "order" ? "order's" : "own"} payment through the provider, or a part of it.`,
    parameters: [id(of), idempotencyKey],
    requestBody: optional("RefundRequest"),
    responses: {
      "200": answer("The refund, or on a repeat within 24 hours the stored answer.", "Refund", replayed),
      ...protectedRefusals,
      "404": refusal(`\`${of}_not_found\``),
      "409": comeBack(
        `\`order_not_paid\`, \`refund_in_progress\`, \`refund_refused\`, \`idempotency_key_reused\`, \`operation_in_progress\`; ${unsettled}`,
      ),
      "422": refusal("`refund_exceeds_payment`, `payment_refunded`, `refund_declined`"),
    },
  },
});

/** The paths of what goes through the provider. */
export const providerPaths = {
  "/orders/{id}/payment/confirm": {
    post: {
      operationId: "confirmPayment",
      summary: "Charges the order's total through the provider.",
      parameters: [id("order"), idempotencyKey],
      requestBody: optional("Nothing"),
      responses: {
        "200": answer("The payment, or on a repeat within 24 hours the stored answer.", "Payment", replayed),
        ...protectedRefusals,
        "404": refusal("`order_not_found`"),
        "409": comeBack(
          `\`order_not_payable\`, \`payment_in_progress\`, \`payment_declined\`, \`idempotency_key_reused\`, \`operation_in_progress\`; ${unsettled}`,
        ),
        "422": refusal("`charge_declined`"),
      },
    },
  },
  "/orders/{id}/refund": refund("order"),
  "/payments/{id}/refund": refund("payment"),
  "/checkouts": {
    post: {
      operationId: "startCheckout",
      summary: "Starts a checkout: reserves stock, charges and confirms, or undoes all of it.",
      parameters: [idempotencyKey],
      requestBody: body("CheckoutRequest"),
      responses: {
        "202": answer("It has been started, and goes on by itself.", "Checkout", {
          ...replayed,
          Location: header("where its state is told"),
        }),
        ...protectedRefusals,
        "404": refusal("`order_not_found`"),
        "409": comeBack("`idempotency_key_reused`, `operation_in_progress`"),
      },
    },
  },
  "/checkouts/{id}": {
    get: {
      operationId: "getCheckout",
      summary: "How far a checkout has come.",
      parameters: [id("checkout")],
      responses: {
        "200": answer("Its state.", "Checkout"),
        ...refusals,
        "404": refusal("`checkout_not_found`"),
      },
    },
  },
};

// What the paths of the OpenAPI document are made of.

const json = (name: string) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } });

export const answer = (description: string, name: string, headers: object = {}) => ({
  description,
  headers,
  content: json(name),
});

export const header = (description: string) => ({ description, schema: { type: "string" } });

export const replayed = {
  "Idempotent-Replayed": header(
    "`true` where this is the stored answer of an earlier request with the same key",
  ),
};

export const refusal = (description: string) => ({
  description,
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
});

export const comeBack = (description: string) => ({
  ...refusal(description),
  headers: { "Retry-After": header("seconds until the request should be repeated with the same key") },
});

export const refusals = {
  "400": refusal("`validation_failed`: `field` names the input at fault"),
  "401": refusal("`token_missing`, `token_invalid`"),
  "403": refusal("`role_missing`, `order_foreign`"),
  "503": comeBack("`service_unavailable`, `idempotency_unavailable`, `issuer_unavailable`"),
};

export const protectedRefusals = {
  ...refusals,
  "400": refusal("`validation_failed`, `idempotency_key_missing`, `idempotency_key_malformed`"),
  "413": refusal("`request_refused`: the body is too large"),
  "415": refusal("`request_refused`: the body isn't JSON"),
};

export const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  required: true,
  description:
    "One for each business operation, kept through its retries: 1 to 255 printable ASCII characters.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

export const body = (name: string) => ({ required: true, content: json(name) });

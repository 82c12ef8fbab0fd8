import { IdemkitError } from "../errors.ts";

/** What is called of a schema by the Standard Schema specification, version 1: Zod, Valibot, ArkType and others have it. */
export interface StandardSchema {
  readonly "~standard": {
    readonly version: 1;
    validate(value: unknown): SchemaResult | Promise<SchemaResult>;
  };
}

interface SchemaResult {
  readonly issues?: readonly SchemaIssue[] | undefined;
}

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * Checks a payload; it is sent as it was given, not as the schema would transform it. Returns a promise only where the
 * schema does.
 * @throws IdemkitError `outbox_payload_refused`, with the first issue's path in `details.at` and never the value.
 */
export function checkPayload(
  schema: StandardSchema,
  type: string,
  payload: unknown,
): Promise<void> | undefined {
  const result = schema["~standard"].validate(payload);
  if ("then" in result) return Promise.resolve(result).then((settled) => refuseIssues(type, settled));
  refuseIssues(type, result);
  return undefined;
}

function refuseIssues(type: string, { issues }: SchemaResult): void {
  const [first] = issues ?? [];
  if (first === undefined) return;
  const at = `payload${(first.path ?? []).map((part) => `/${String(nameOf(part))}`).join("")}`;
  throw new IdemkitError("outbox_payload_refused", { detail: `${type}, at ${at}`, details: { at } });
}

function nameOf(part: PropertyKey | { readonly key: PropertyKey }): PropertyKey {
  return typeof part === "object" ? part.key : part;
}

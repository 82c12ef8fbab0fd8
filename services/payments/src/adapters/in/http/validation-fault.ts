import type { FastifySchemaValidationError } from "fastify";
import type { FieldFault } from "../../../core/errors.ts";

/** A member's name comes from the client and goes back to it: enough to recognise, not a page of it. */
const MAX_NAME_LENGTH = 64;

/** The fault that the JSON Schema validator found, named the way the client wrote it: `items[0].unitPrice`. */
export const validationFault = (error: FastifySchemaValidationError, context: string): FieldFault => {
  const path = error.instancePath.split("/").slice(1).map(unescape);
  const { missingProperty, additionalProperty } = error.params;
  if (typeof missingProperty === "string") {
    return { field: fieldName([...path, missingProperty], context), message: "is required" };
  }
  if (typeof additionalProperty === "string") {
    return { field: fieldName([...path, additionalProperty], context), message: "is not a known field" };
  }
  return { field: fieldName(path, context), message: messageOf(error) };
};

/** JSON Pointer's two escapes (RFC 6901, section 3). */
const unescape = (token: string): string => token.replaceAll("~1", "/").replaceAll("~0", "~");

const fieldName = (path: readonly string[], context: string): string => {
  const name = path.reduce((joined, token) => {
    if (/^\d+$/u.test(token)) {
      return `${joined}[${token}]`;
    }
    return joined === "" ? token : `${joined}.${token}`;
  }, "");
  return name.slice(0, MAX_NAME_LENGTH) || context;
};

/** The schema's own words where a pattern failed: nobody should have to read a regular expression. */
const messageOf = (error: FastifySchemaValidationError): string => {
  const { parentSchema } = error as { readonly parentSchema?: { readonly description?: unknown } };
  if (error.keyword === "pattern" && typeof parentSchema?.description === "string") {
    return parentSchema.description;
  }
  return error.message ?? "is not valid";
};

import { pino } from "pino";
import type { Logger } from "pino";

/** Structured logs without payloads: of an error only what tells a person where to look. */
export const createLogger = (level: string): Logger =>
  pino({ level, base: { service: "payments", pid: process.pid }, serializers: { err: safeError } });

/** PostgreSQL's `detail` quotes the row at fault, which can hold a customer's data; so it is left out. */
const safeError = (error: Error & { readonly code?: unknown }): object => ({
  type: error.name,
  message: error.message,
  code: error.code,
  stack: error.stack,
});

import type { Answer } from "./customer.ts";

/** One line of what came back. */
export const describe = ({ status, headers, text }: Answer): string => {
  const marks = ["idempotent-replayed", "retry-after"]
    .filter((name) => headers.has(name))
    .map((name) => `${name}: ${headers.get(name)}`);
  return [String(status), subjectOf(text), ...marks].join("  ");
};

const subjectOf = (text: string): string => {
  const { id, code } = JSON.parse(text) as { readonly id?: string; readonly code?: string };
  return id === undefined ? `${code}` : `payment ${id}`;
};

import { absent, done, refuse, unknown } from "idemkit";
import type { Moved, Movement, Provider } from "../../../core/provider.ts";
import type { StoredRefusal } from "../../../core/refusal.ts";

export interface HttpProviderOptions {
  readonly url: URL;
  readonly honoursKeys: boolean;
  readonly deadlineMs: number;
  readonly graceMs: number;
}

/** The provider behind its HTTP API. An answer counts only where it is one of those that its documentation knows. */
export const httpProvider = ({ url, ...given }: HttpProviderOptions): Provider => ({
  ...given,
  move: async ({ kind, ...movement }, { key, signal }) => {
    const response = await fetch(new URL(`/${kind}s`, url), {
      method: "POST",
      signal,
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(movement),
    });
    if (response.status === 201) {
      return movedOf(await response.json());
    }
    await response.body?.cancel();
    if (response.status === 402 || response.status === 422) {
      throw refuse(declined(kind));
    }
    throw unexpected(kind, response.status);
  },
  find: async (kind, { key, signal }) => {
    const response = await fetch(new URL(`/${kind}s/${encodeURIComponent(key)}`, url), { signal });
    if (response.status === 200) {
      return done(movedOf(await response.json()));
    }
    await response.body?.cancel();
    if (response.status === 404) {
      return absent;
    }
    // It has no such look-up: asking again won't help.
    if (response.status === 501) {
      return unknown;
    }
    throw unexpected(kind, response.status);
  },
});

const movedOf = (body: unknown): Moved => {
  const { id } = body as { readonly id?: unknown };
  if (typeof id !== "string") {
    throw new TypeError("the provider's answer has no id");
  }
  return { id };
};

const declined = (kind: Movement["kind"]): StoredRefusal => ({
  kind: "unprocessable",
  code: `${kind}_declined`,
  message: `the provider declined the ${kind}`,
  faults: [],
});

const unexpected = (kind: string, status: number): Error =>
  new Error(`the provider answered a ${kind} with ${status}`);

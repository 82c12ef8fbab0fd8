import type { Context, Next } from "hono";

import type { Capture } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Route } from "./route.ts";
import { captureOf, ownResponse, responseOf } from "./web.ts";

function noResponse(): Error {
  return new Error("the handler of a protected route returned no response");
}

/**
 * The exchange of Hono: a middleware around the rest of the chain. `app.onError` has rendered a thrown Error by the time
 * that `next()` returns, so the error is found in `c.error` and its answer in `c.res`.
 */
export function honoExchange<Tx>(route: Route<Tx>, c: Context, next: Next): Exchange<Tx, void> {
  let pending = false;
  let base: Headers | undefined;
  let thrown: { readonly error: unknown; readonly capture: Capture } | undefined;

  async function attempt(): Promise<Capture> {
    await next();
    if (c.error === undefined && !c.finalized) throw noResponse();
    const capture = await captureOf(c.res, route.maxResponseBytes);
    if (c.error === undefined) return capture;
    thrown = { error: c.error, capture };
    throw c.error;
  }

  /** Replaces the response without the merge of headers that assigning to `c.res` does. */
  function replace(response: Response): void {
    c.res = undefined;
    c.res = response;
  }

  /** The headers of middleware before this one; reading `c.res` gathers those that were only announced. */
  function baseHeaders(): Headers {
    return new Headers(base ?? c.res.headers);
  }

  return {
    attempt: async (once) => {
      base = baseHeaders();
      c.set("once", once);
      pending = true;
      try {
        return await attempt();
      } finally {
        pending = false;
      }
    },
    pending: () => pending,
    canRunAgain: () => false, // `next()` can be called once
    render: async (error) => {
      if (thrown !== undefined && thrown.error === error) return thrown.capture;
      // COMMIT failed: `app.onError` will render it, without the headers that the handler has set.
      replace(new Response(null, { headers: baseHeaders() }));
      throw error;
    },
    engaged: () => false,
    sendCapture: (capture) => replace(responseOf(capture)),
    sendAnswer: (answer) => {
      const own = ownResponse(answer);
      const headers = baseHeaders();
      for (const [name, value] of own.headers) headers.set(name, value);
      replace(new Response(own.body, { status: own.status, headers }));
    },
  };
}

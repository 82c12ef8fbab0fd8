import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { bank } from "./bank.ts";
import type { Bank, Order } from "./bank.ts";
import { openLedger } from "./ledger.ts";
import type { Ledger, LedgerEntry } from "./ledger.ts";
import { faultsOf, turned, wellBehaved } from "./switches.ts";
import type { Fault, FaultSource, Switches } from "./switches.ts";
import { webhooks } from "./webhooks.ts";
import type { Webhooks } from "./webhooks.ts";

export interface ProviderOptions {
  readonly port: number;
  readonly ledgerFile: string;
  readonly switches?: Partial<Switches>;
}

export interface ProviderServer {
  readonly url: string;
  stop(): Promise<void>;
}

interface State {
  readonly ledger: Ledger;
  readonly bank: Bank;
  readonly webhooks: Webhooks;
  switches: Switches;
  faults: FaultSource;
}

/** A payment provider to test against: it keeps books of its own, and goes wrong on request. */
export const startProvider = async ({
  port,
  ledgerFile,
  switches,
}: ProviderOptions): Promise<ProviderServer> => {
  const ledger = openLedger(ledgerFile);
  const first = turned(wellBehaved, switches ?? {});
  const state: State = {
    ledger,
    bank: bank(ledger),
    webhooks: webhooks(),
    switches: first,
    faults: faultsOf(first),
  };
  const server = createServer((request, response) => {
    serve(state, request, response).catch(() => response.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    ledger.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
};

const serve = async (state: State, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const [, path = "", key = ""] = (request.url ?? "").split("/");
  const route = `${request.method} /${path}${key === "" ? "" : "/key"}`;
  switch (route) {
    case "POST /charges":
    case "POST /refunds": {
      return order(state, await orderOf(request, path === "charges" ? "charge" : "refund"), response);
    }
    case "GET /charges/key":
    case "GET /refunds/key": {
      lookUp(state, path === "charges" ? "charge" : "refund", decodeURIComponent(key), response);
      return;
    }
    case "GET /ledger": {
      answer(response, 200, state.ledger.entries);
      return;
    }
    case "GET /switches": {
      answer(response, 200, state.switches);
      return;
    }
    case "PUT /switches": {
      state.switches = turned(state.switches, await bodyOf(request));
      state.faults = faultsOf(state.switches);
      answer(response, 200, state.switches);
      return;
    }
    default: {
      answer(response, 404, { code: "not_found" });
    }
  }
};

const orderOf = async (request: IncomingMessage, kind: Order["kind"]): Promise<Order> => {
  const body = (await bodyOf(request)) as Partial<Record<keyof Order, unknown>>;
  const text = (name: keyof Order): string => (typeof body[name] === "string" ? body[name] : "");
  return {
    kind,
    key: String(request.headers["idempotency-key"] ?? ""),
    amount: text("amount"),
    currency: text("currency"),
    reference: text("reference"),
  };
};

const order = async (state: State, asked: Order, response: ServerResponse): Promise<void> => {
  const fault = state.faults.next();
  const { honoursKeys, slowMs } = state.switches;
  if (fault === "slow") {
    await delay(slowMs);
  }
  if (failsBefore(fault, response)) {
    return;
  }
  const earlier = honoursKeys ? await state.bank.earlier(asked) : undefined;
  if (earlier === "conflict") {
    answer(response, 409, { code: "key_reused" });
    return;
  }
  // A stored answer is given before anything is decided anew.
  const isRefused = fault === "refuse" || (fault === "decline" && asked.kind === "charge");
  if (earlier === undefined && isRefused) {
    answer(response, 402, { code: "card_declined" });
    return;
  }
  const entry = earlier ?? (await state.bank.book(asked, honoursKeys));
  if (entry === undefined) {
    answer(response, 422, { code: "refund_exceeds_charge" });
    return;
  }
  if (earlier === undefined) {
    state.webhooks.send(entry, state.switches);
  }
  answerUnless(fault, entry, response);
};

/** Whether the fault ends the request before any money moves. */
const failsBefore = (fault: Fault | undefined, response: ServerResponse): boolean => {
  if (fault === "die-before") {
    process.kill(process.pid, "SIGKILL");
  }
  if (fault === "error") {
    answer(response, 500, { code: "internal_error" });
  }
  if (fault === "cut-before") {
    response.destroy();
  }
  // The time-out is the caller's: it is left without an answer until it gives up.
  return fault === "die-before" || fault === "error" || fault === "cut-before" || fault === "timeout-before";
};

const answerUnless = (fault: Fault | undefined, entry: LedgerEntry, response: ServerResponse): void => {
  if (fault === "die-after") {
    process.kill(process.pid, "SIGKILL");
  } else if (fault === "cut-after") {
    response.destroy();
  } else if (fault !== "timeout-after") {
    answer(response, 201, entry);
  }
};

const lookUp = (state: State, kind: Order["kind"], key: string, response: ServerResponse): void => {
  if (!state.switches.lookUp) {
    return answer(response, 501, { code: "no_look_up" });
  }
  const found = state.bank.byKey(kind, key);
  return found === undefined ? answer(response, 404, { code: "not_found" }) : answer(response, 200, found);
};

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}");
};

import { createServer, request as send } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

import { idempotentFetch } from "idemkit/client";
import { expect, test } from "vitest";

import { shortTimes, startProviderProcess } from "../e2e/payments/provider-stage.ts";
import { openStage } from "../e2e/payments/stage.ts";

const operations = 500;
const atOnce = 25;

interface Proxy {
  readonly url: string;
  readonly faults: Record<string, number>;
  close(): void;
}

/** A network that loses requests and answers, and delivers late and twice. */
async function badNetwork(target: string): Promise<Proxy> {
  const faults: Record<string, number> = {
    "drop-request": 0,
    "drop-response": 0,
    delay: 0,
    duplicate: 0,
    none: 0,
  };
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on(
      "end",
      () => void carry(incoming, Buffer.concat(chunks), outgoing).catch(() => outgoing.destroy()),
    );
  });

  async function carry(incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse): Promise<void> {
    const names = ["drop-request", "drop-response", "delay", "duplicate", "none"];
    const fault = names[Math.floor(Math.random() * names.length)] ?? "none";
    faults[fault] = (faults[fault] ?? 0) + 1;
    if (fault === "drop-request") return void outgoing.destroy();
    if (fault === "delay") await delay(50 + Math.random() * 300);
    const first = forward(incoming, body);
    const answer = await (fault === "duplicate"
      ? Promise.all([first, forward(incoming, body)]).then(([, one]) => one)
      : first);
    if (fault === "drop-response") return void outgoing.destroy();
    outgoing.writeHead(answer.status, answer.headers).end(answer.text);
  }

  function forward(
    incoming: IncomingMessage,
    body: Buffer,
  ): Promise<{ status: number; headers: IncomingMessage["headers"]; text: Buffer }> {
    return new Promise((resolve, reject) => {
      const { method, headers } = incoming;
      const forwarded = send(`${target}${incoming.url}`, { method, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks) }),
        );
      });
      forwarded.on("error", reject);
      forwarded.end(body);
    });
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, faults, close };
}

test("500 operations of the client behind a network that drops, delays and duplicates take effect once and all end", async () => {
  const stage = await openStage();
  const provider = await startProviderProcess();
  const service = await stage.startReplica({ env: { ...shortTimes, PROVIDER_URL: provider.url } });
  const network = await badNetwork(service.url);
  const token = await stage.token("shopper");
  const { rows } = await stage.pool.query<{ id: string }>({
    text: "insert into public.orders (customer_id, status, total, currency) select 'shopper', 'pending', 21, 'EUR' from generate_series(1, $1) returning id",
    values: [operations],
  });
  await stage.pool.query("insert into public.order_item select id, 0, 'teapot', 2, 10.5 from public.orders");
  const client = idempotentFetch({
    tryTimeoutMs: 5000,
    totalTimeoutMs: 90_000,
    backoffBaseMs: 50,
    backoffMaxMs: 500,
  });
  const ids = rows.map(({ id }) => id);
  const answers = new Map<string, number>();
  const worker = async (): Promise<void> => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const headers = { authorization: `Bearer ${token}` };
      const response = await client(`${network.url}/orders/${id}/payment/confirm`, {
        method: "POST",
        headers,
        operation: `pay:${id}`,
      });
      answers.set(id, response.status);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  expect(answers.size).toBe(operations);
  expect(new Set(answers.values())).toEqual(new Set([200]));
  expect(Object.values(network.faults).every((count) => count > 50)).toBe(true);
  const ledger = await provider.ledger();
  expect(ledger).toHaveLength(operations);
  expect(new Set(ledger.map(({ reference }) => reference)).size).toBe(operations);
  const { rows: paid } = await stage.pool.query(
    "select count(*)::integer as n from public.orders where status = 'paid'",
  );
  expect(paid).toEqual([{ n: operations }]);
  network.close();
  await provider.close();
  await stage.close();
}, 240_000);

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { findChromium } from "../../../scripts/chromium.mjs";
import { bundleClient } from "../../../scripts/client-bundle.mjs";
import { guardProcess } from "../../../scripts/process/guard.mjs";

/**
 * The page pays, loses the answer, reloads as a user would, and pays again: the browser's storage must bring the same key.
 * `step` is kept by the page itself, so that the reload is a real one.
 */
const page = `<!doctype html><title>shop</title><script type="module">
import { idempotentFetch, webStorageKeys } from "/client.js";
const send = idempotentFetch({ keys: webStorageKeys(localStorage), backoffBaseMs: 1, tryTimeoutMs: 5000, totalTimeoutMs: 20000 });
const step = Number(sessionStorage.getItem("step") ?? 0);
sessionStorage.setItem("step", String(step + 1));
const pay = (path) => send(path, { method: "POST", body: JSON.stringify({ amount: "1.00" }), operation: "pay:order-1" });
const report = (result) => fetch("/result", { method: "POST", body: JSON.stringify(result) });
if (step === 0) {
  pay("/lost").catch(() => {});
  const poll = setInterval(async () => {
    if ((await (await fetch("/seen")).json()) < 1) return;
    clearInterval(poll);
    location.reload();
  }, 20);
} else {
  try {
    const response = await pay("/lost");
    const unkeyedPost = await send("/unavailable", { method: "POST" });
    await report({ status: response.status, body: await response.json(), unkeyed: unkeyedPost.status });
  } catch (error) {
    await report({ error: String(error), code: error.code });
  }
}
</script>`;

interface Seen {
  readonly path: string | undefined;
  readonly key: string | undefined;
}

function serve(code: string, seen: Seen[], onResult: (result: unknown) => void): Server {
  let held: ServerResponse | undefined;
  const payments = (request: IncomingMessage, response: ServerResponse): void => {
    const key = request.headers["idempotency-key"];
    seen.push({ path: request.url, key: Array.isArray(key) ? key.join(",") : key });
    if (held === undefined) held = response; // the first answer never comes
    else response.writeHead(201, { "content-type": "application/json" }).end('{"id":"payment-1"}');
  };
  const bodies: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
    "/": (_request, response) => void response.writeHead(200, { "content-type": "text/html" }).end(page),
    "/client.js": (_request, response) =>
      void response.writeHead(200, { "content-type": "text/javascript" }).end(code),
    "/seen": (_request, response) => void response.end(JSON.stringify(seen.length)),
    "/lost": payments,
    "/unavailable": (request, response) => {
      seen.push({ path: request.url, key: undefined });
      response.writeHead(503).end();
    },
    "/result": (request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        response.end();
        onResult(JSON.parse(text));
      });
    },
  };
  return createServer((request, response) => {
    const answer = bodies[request.url ?? ""];
    if (answer === undefined) response.writeHead(404).end();
    else answer(request, response);
  });
}

describe.skipIf(findChromium() === undefined)("the client in Chromium", () => {
  const seen: Seen[] = [];
  let server: Server;
  let profile: string;
  let result: Promise<unknown>;

  beforeAll(async () => {
    const code = await bundleClient();
    profile = await mkdtemp(join(tmpdir(), "idemkit-chromium-"));
    result = new Promise((resolve) => {
      server = serve(code, seen, resolve);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });

  test("repeats a payment after a reload under the key of the first try", async () => {
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"];
    const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const browser = spawn(findChromium() ?? "", [...flags, ...quiet, `--user-data-dir=${profile}`, url], {
      stdio: "ignore",
    });
    const callOff = guardProcess(browser.pid ?? 0, { signal: "KILL" });
    const gone = new Promise((resolve) => browser.once("exit", resolve));
    try {
      expect(await result).toEqual({
        status: 201,
        body: { id: "payment-1" },
        unkeyed: 503,
      });
    } finally {
      browser.kill("SIGKILL");
      await gone;
      callOff();
    }
    const keys = seen.filter(({ path }) => path === "/lost").map(({ key }) => key);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen.filter(({ path }) => path === "/unavailable")).toHaveLength(1);
  });
});

import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../scripts/process/free-port.mjs";
import { dataFolder } from "../../../services/payments/src/dev/places.ts";
import { spawnProcess, until } from "../../support/index.ts";
import type { TestProcess } from "../../support/index.ts";
import { ask } from "./client.ts";
import { expectHandled } from "./handled-events.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);
const ports: number[] = [];
const processes: TestProcess[] = [];
const children: ChildProcess[] = [];

const newPort = async (): Promise<number> => {
  const port = await freePort();
  ports.push(port);
  return port;
};

/** As `npm start` runs it, with a PostgreSQL of its own whatever the run's database is. */
const start = (port: number): TestProcess => {
  const env = { PORT: String(port), DATABASE_URL: "" };
  const started = spawnProcess("services/payments/dist/dev/start.js", { env });
  processes.push(started);
  return started;
};

const ready = (started: TestProcess) =>
  started.waitForLine(/Ctrl-C stops everything/u, { timeoutMs: 60_000 });

const isServed = (port: number): Promise<boolean> =>
  ask(`http://127.0.0.1:${port}/health`).then(
    () => true,
    () => false,
  );

/** The lines below a heading of the transcript. */
const section = ({ lines }: TestProcess, heading: string): string => {
  const from = lines.findIndex((line) => line.startsWith(heading));
  const to = lines.findIndex((line, index) => index > from && line === "");
  return lines.slice(from + 1, to).join("\n");
};

afterAll(async () => {
  await Promise.all(processes.map((each) => each.kill("SIGINT")));
  children.forEach((each) => each.kill("SIGKILL"));
  await Promise.all(ports.map((port) => rm(dataFolder(port), { recursive: true, force: true })));
});

describe("npm start", () => {
  let port: number;
  let otherPort: number;
  let started: TestProcess;
  let other: TestProcess;

  beforeAll(async () => {
    port = await newPort();
    otherPort = await newPort();
    [started, other] = [start(port), start(otherPort)];
    await Promise.all([ready(started), ready(other)]);
  }, 90_000);

  test("shows calls with the rows they left, two at once on different ports", () => {
    for (const each of [started, other]) {
      expect(section(each, "First call")).toMatch(/ 201 .*\n.*payment 1, idempotency_record of charge 1/u);
      expect(section(each, "The same again")).toMatch(
        / 201 .*idempotent-replayed: true.*: yes\n.*payment 1,/u,
      );
      expect(section(each, "The same key with another body")).toMatch(/ 409 +idempotency_key_reused/u);
      expect(section(each, "No key")).toMatch(/ 400 +idempotency_key_missing/u);
      expect(section(each, "50 duplicates")).toMatch(/different bodies: 1\n.*payment 2, .* 2/u);
    }
  });

  test("shows a kill in the middle of a charge that leaves nothing, and the retry that makes one payment", () => {
    const lines = section(started, "SIGKILL in the middle").split("\n");
    expect(lines).toEqual([
      expect.stringContaining("no answer"),
      expect.stringContaining("payment 2, idempotency_record of charge 2"),
      expect.stringContaining("started again"),
      expect.stringMatching(/ 201 +payment [\da-f-]{36}$/u),
      expect.stringMatching(/ 201 +payment [\da-f-]{36} +idempotent-replayed: true$/u),
      expect.stringContaining("payment 3, idempotency_record of charge 3"),
    ]);
  });

  test("shows that events reach both consumers, that a second sending changes nothing, and a balanced ledger", () => {
    for (const each of [started, other]) {
      expectHandled(section(each, "Events of"));
      expect(section(each, "SIGKILL of the relay").split("\n")).toEqual([
        expect.stringContaining("without a relay: 201"),
        expect.stringContaining("waiting: 1; rows: ledger_entry 1, notification 1"),
        expect.stringContaining("killed"),
        expect.stringContaining("waiting: 1; rows: ledger_entry 2, notification 2"),
        expect.stringContaining("suppressed as duplicates: 2"),
        expect.stringContaining("waiting: 0; rows: ledger_entry 2, notification 2"),
      ]);
      expect(section(each, "The ledger")).toMatch(/sales +-\d+\.\d{4} EUR\n.*add up to 0\.0000$/u);
    }
  });

  test("prints curl lines that work as they stand, and are replayed when they are sent again", async () => {
    const curls = started.lines.filter((line) => line.startsWith("curl "));
    const send = async (line: string): Promise<string> => (await run("/bin/sh", ["-c", line])).stdout;
    const [order = "", payment = "", get = "", openapi = ""] = curls;
    expect(curls).toHaveLength(6);
    for (const line of [order, payment]) {
      expect(await send(line)).toMatch(/^HTTP\/1.1 201 /u);
      expect(await send(line)).toMatch(/idempotent-replayed: true/iu);
    }
    expect(await send(get)).toMatch(/^HTTP\/1.1 200 /u);
    expect(JSON.parse(await send(openapi))).toMatchObject({ openapi: "3.1.0" });
  });

  test("gives tokens for the service on its port, with the roles asked for", async () => {
    const script = `${root}/services/payments/dist/dev/token.js`;
    const token = async (...args: string[]): Promise<string> => {
      const { stdout } = await run(process.execPath, [script, ...args], {
        env: { ...process.env, PORT: String(port) },
      });
      return stdout.trim();
    };
    const path = `http://127.0.0.1:${port}/orders/00000000-0000-4000-8000-000000000000`;
    expect((await ask(path, { token: await token("alice") })).status).toBe(404);
    expect((await ask(path, { token: await token("alice", "guest") })).status).toBe(403);
    expect(
      (await ask(path.replace(String(port), String(otherPort)), { token: await token("alice") })).status,
    ).toBe(401);
  });

  test("says that a port is taken, and names PORT", async () => {
    const second = start(port);
    expect(await second.exited).toMatchObject({ code: 1 });
    expect(second.lines.join("\n")).toMatch(new RegExp(`port ${port} is taken.*PORT=`, "u"));
    const stranger = createServer().listen(await newPort(), "127.0.0.1");
    const third = start(ports.at(-1) ?? 0);
    expect(await third.exited).toMatchObject({ code: 1 });
    expect(third.lines.join("\n")).toMatch(/is taken.*PORT=/u);
    stranger.close();
  });

  test("starts again after a SIGKILL, with the rows there were", async () => {
    const line = started.lines.find((each) => each.includes("/payments -H")) ?? "";
    const first = await run("/bin/sh", ["-c", line]);
    await started.kill("SIGKILL");
    const again = start(port);
    await ready(again);
    const { stdout } = await run("/bin/sh", ["-c", line]);
    expect(stdout).toContain("201 Created");
    expect(stdout.split("\r\n\r\n")[1]).toBe(first.stdout.split("\r\n\r\n")[1]);
  });

  test("ends with code 0 and leaves nothing running on Ctrl-C", async () => {
    expect(await other.kill("SIGINT")).toEqual({ code: 0, signal: null });
    expect(await isServed(otherPort)).toBe(false);
    const { stdout } = await run("ps", ["-A", "-o", "args="]);
    expect(stdout.split("\n").filter((line) => line.includes(dataFolder(otherPort)))).toEqual([]);
  });

  test("stops with the npm that runs it, however that ends, and can be started again at once", async () => {
    const npmPort = await newPort();
    const env = { ...process.env, PORT: String(npmPort), DATABASE_URL: "" };
    const npmStart = async (): Promise<ChildProcess> => {
      const npm = spawn("npm", ["start"], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
      children.push(npm);
      let output = "";
      npm.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      await until(() => output.includes("Ctrl-C stops everything") || npm.exitCode !== null, {
        timeoutMs: 60_000,
      });
      if (npm.exitCode !== null) {
        throw new Error(`npm start ended:\n${output}`);
      }
      return npm;
    };
    const killed = await npmStart();
    killed.kill("SIGKILL");
    await once(killed, "exit");
    const interrupted = await npmStart();
    interrupted.kill("SIGINT");
    expect(await once(interrupted, "exit")).toEqual([0, null]);
    expect(await isServed(npmPort)).toBe(false);
  });

  test("ends with code 0 also while it is starting", async () => {
    const early = start(await newPort());
    await early.waitForLine(/First call/u, { timeoutMs: 30_000 });
    expect(await early.kill("SIGINT")).toEqual({ code: 0, signal: null });
  });
});

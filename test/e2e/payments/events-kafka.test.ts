import { rm } from "node:fs/promises";
import { afterAll, describe, expect, test } from "vitest";
import { whyNoKafka } from "../../../scripts/kafka/provide.mjs";
import { freePort } from "../../../scripts/process/free-port.mjs";
import { dataFolder } from "../../../services/payments/src/dev/places.ts";
import { spawnProcess } from "../../support/index.ts";
import type { TestProcess } from "../../support/index.ts";
import { expectHandled } from "./handled-events.ts";

let started: TestProcess | undefined;
let folder: string | undefined;

afterAll(async () => {
  await started?.kill("SIGKILL");
  if (folder !== undefined) {
    await rm(folder, { recursive: true, force: true });
  }
});

describe.skipIf(whyNoKafka() !== undefined)("npm start -- --kafka", () => {
  test("sends the events over a real broker, each taking effect once", async () => {
    const port = await freePort();
    folder = dataFolder(port);
    const env = { PORT: String(port), DATABASE_URL: "" };
    started = spawnProcess("services/payments/dist/dev/start.js", { env, args: ["--kafka"] });
    await started.waitForLine(/Ctrl-C stops everything/u, { timeoutMs: 150_000 });
    const output = started.lines.join("\n");
    expect(output).toMatch(/over Kafka at [\d.]+:\d+/u);
    expectHandled(output);
    expect(output).toMatch(
      /suppressed as duplicates: 2.*\n.*waiting: 0; rows: ledger_entry 2, notification 2\n/u,
    );
    expect(output).toMatch(/add up to 0\.0000\n/u);
    expect(await started.kill("SIGINT")).toEqual({ code: 0, signal: null });
  });

  test("says which options there are not", async () => {
    const env = { PORT: String(await freePort()), DATABASE_URL: "" };
    const wrong = spawnProcess("services/payments/dist/dev/start.js", { env, args: ["--kafke"] });
    expect(await wrong.exited).toMatchObject({ code: 1 });
    expect(wrong.lines.join("\n")).toMatch(/npm start: Unknown option '--kafke'/u);
  });
});

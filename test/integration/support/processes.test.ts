import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { identityOf } from "../../../scripts/process/identity.mjs";
import { tryLock } from "../../../scripts/process/owner-lock.mjs";
import { spawnProcess, until } from "../../support/index.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "idemkit-processes-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function script(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("a spawned process is seen line by line, and killed by its signal", async () => {
  await using child = spawnProcess(
    script("talk.mjs", `console.log("ready on 42"); setInterval(() => {}, 1000);`),
  );
  expect((await child.waitForLine(/ready on (\d+)/))[1]).toBe("42");
  expect(await child.kill("SIGTERM")).toEqual({ code: null, signal: "SIGTERM" });
});

test("waiting for a line of a process that ends without it shows what it said", async () => {
  await using child = spawnProcess(script("fail.mjs", `console.error("no database"); process.exit(3);`));
  await expect(child.waitForLine(/ready/)).rejects.toThrow(/"code":3[^]*no database/);
});

test("a spawned process does not outlive a killed test process", async () => {
  const support = new URL("../../../scripts/process/guard.mjs", import.meta.url).href;
  const parent = script(
    "parent.mjs",
    `import { spawn } from "node:child_process";
     import { guardProcess } from ${JSON.stringify(support)};
     const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
     guardProcess(child.pid, { signal: "KILL" });
     console.log("child " + child.pid);
     setInterval(() => {}, 1000);`,
  );
  await using process = spawnProcess(parent);
  const pid = Number((await process.waitForLine(/child (\d+)/))[1]);
  expect(identityOf(pid)).toBeDefined();
  await process.kill("SIGKILL");
  await until(() => identityOf(pid) === undefined, { what: "the grandchild's end" });
});

test("a lock is taken over from a dead owner, and never from a live one", async () => {
  const path = join(folder, "held.lock");
  const lockModule = new URL("../../../scripts/process/owner-lock.mjs", import.meta.url).href;
  const holder = script(
    "holder.mjs",
    `import { tryLock } from ${JSON.stringify(lockModule)};
     console.log("release" in tryLock(${JSON.stringify(path)}) ? "held" : "refused");
     setInterval(() => {}, 1000);`,
  );
  await using owner = spawnProcess(holder);
  await owner.waitForLine(/^held$/);
  expect(tryLock(path)).toMatchObject({ pid: owner.pid });
  await owner.kill("SIGKILL");
  const lock = tryLock(path);
  if (!("release" in lock)) throw new Error("still held");
  expect(tryLock(path)).toMatchObject({ pid: process.pid });
  lock.release();
});

import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";

import { startPostgres } from "../../../scripts/embedded-postgres.mjs";
import type { EmbeddedPostgres } from "../../../scripts/embedded-postgres.mjs";
import { commandLineOf, childrenOf, identityOf } from "../../../scripts/process/identity.mjs";
import { spawnProcess, until } from "../../support/index.ts";
import type { TestProcess } from "../../support/index.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "idemkit-embedded-"));
  // The server's user must be able to enter it, when these tests run as root.
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const launcher = new URL("../../../scripts/embedded-postgres.mjs", import.meta.url).href;

/** A process that runs the server on the folder until it is killed. */
function spawnOwner(dataDir: string): TestProcess {
  const script = join(folder, "owner.mjs");
  writeFileSync(
    script,
    `import { startPostgres } from ${JSON.stringify(launcher)};
     const server = await startPostgres({ dataDir: ${JSON.stringify(dataDir)}, durable: false });
     console.log("running " + server.pid + " " + server.connectionString);
     setInterval(() => {}, 1000);`,
  );
  return spawnProcess(script);
}

/** Its server ends a moment after it, and only then may the folder go. */
async function endOwner(owner: TestProcess): Promise<void> {
  const [, pid = ""] = await owner.waitForLine(/^running (\d+)/);
  await owner.kill("SIGKILL");
  await until(() => identityOf(Number(pid)) === undefined, { what: "the end of the owner's server" });
}

async function query(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

async function withServer<T>(dataDir: string, work: (server: EmbeddedPostgres) => Promise<T>): Promise<T> {
  const server = await startPostgres({ dataDir, durable: false });
  try {
    return await work(server);
  } finally {
    await server.stop();
  }
}

test("a data folder in use is refused to a second process, by name", async () => {
  const dataDir = join(folder, "data");
  await using owner = spawnOwner(dataDir);
  await owner.waitForLine(/^running/);
  await expect(startPostgres({ dataDir, durable: false })).rejects.toThrow(
    `process ${owner.pid} already runs PostgreSQL on ${dataDir}`,
  );
  await endOwner(owner);
});

test("a server whose owner was killed is stopped by the next start, and its data is kept", async () => {
  const dataDir = join(folder, "data");
  await using owner = spawnOwner(dataDir);
  const [, pid = "", url = ""] = await owner.waitForLine(/^running (\d+) (\S+)$/);
  await query(url, "create table payment as select 1 as id");
  // Without its guard the server outlives its owner, as it does when both are killed.
  const guard = childrenOf(owner.pid).find((child) => commandLineOf(child).includes("read -r line"));
  process.kill(guard ?? 0, "SIGKILL");
  await owner.kill("SIGKILL");
  expect(identityOf(Number(pid))).toBeDefined();
  await withServer(dataDir, async ({ connectionString }) => {
    expect(identityOf(Number(pid))).toBeUndefined();
    expect(await query(connectionString, "select id from payment")).toEqual([{ id: 1 }]);
  });
});

test("a process id that another process got since does not stop the start, nor is that process touched", async () => {
  const dataDir = join(folder, "data");
  await withServer(dataDir, async () => {});
  const bystander = spawnOwner(join(folder, "other"));
  await bystander.waitForLine(/^running/);
  writeFileSync(join(dataDir, "postmaster.pid"), `${bystander.pid}\n${dataDir}\n`);
  await withServer(dataDir, async (server) => {
    expect(await query(server.connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
  });
  expect(identityOf(bystander.pid)).toBeDefined();
  await endOwner(bystander);
});

test("what a killed initdb left is cleared away", async () => {
  const dataDir = join(folder, "data");
  mkdirSync(`${dataDir}.init-half`);
  writeFileSync(`${dataDir}.init-half/PG_VERSION`, "18\n");
  await withServer(dataDir, async () => {});
  expect(existsSync(`${dataDir}.init-half`)).toBe(false);
});

test("a folder that holds something else is left alone", async () => {
  writeFileSync(join(folder, "photo.jpg"), "");
  await expect(startPostgres({ dataDir: folder })).rejects.toThrow(/not a PostgreSQL data folder/);
  expect(readFileSync(join(folder, "photo.jpg"), "utf8")).toBe("");
});

test("a taken port is named", async () => {
  const blocker = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => blocker.once("listening", resolve));
  const { port } = blocker.address() as AddressInfo;
  await expect(startPostgres({ dataDir: join(folder, "data"), port, durable: false })).rejects.toThrow(
    `port ${port} is taken`,
  );
  blocker.close();
});

test("another language and other people's PG variables change nothing", async () => {
  const before = { ...process.env };
  Object.assign(process.env, { LC_ALL: "tr_TR.UTF-8", PGDATA: "/nowhere", PGPORT: "1", PGTZ: "Asia/Tokyo" });
  try {
    await withServer(join(folder, "data"), async ({ connectionString }) => {
      const settings =
        "select current_setting('TimeZone') as zone, lower(current_setting('server_encoding')) as encoding";
      expect(await query(connectionString, settings)).toEqual([{ zone: "UTC", encoding: "utf8" }]);
    });
  } finally {
    process.env = before;
  }
});

test.runIf(isRoot)(
  "below a folder that only root may enter, the data lies elsewhere and is found again",
  async () => {
    const secret = join(folder, "secret");
    mkdirSync(secret, { mode: 0o700 });
    const dataDir = join(secret, "data");
    const first = await withServer(dataDir, async (server) => {
      await query(server.connectionString, "create table payment as select 1 as id");
      return server.dataDir;
    });
    try {
      expect(first).not.toContain(secret);
      expect(readFileSync(`${dataDir}.location.txt`, "utf8")).toContain(first);
      await withServer(dataDir, async ({ connectionString }) => {
        expect(await query(connectionString, "select id from payment")).toEqual([{ id: 1 }]);
      });
    } finally {
      for (const path of [first, `${first}.log`]) rmSync(path, { recursive: true, force: true });
    }
  },
);

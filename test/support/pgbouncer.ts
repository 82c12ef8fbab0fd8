import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { findPgBouncer } from "../../scripts/pgbouncer.mjs";
import { freePort } from "../../scripts/process/free-port.mjs";
import { serverUser } from "../../scripts/postgres/server-user.mjs";
import { guardFolder, guardProcess } from "../../scripts/process/guard.mjs";
import { databaseUrl } from "./server.ts";
import { until } from "./until.ts";

export interface PgBouncer {
  /** Of the same database, through PgBouncer. */
  readonly connectionString: string;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PgBouncerOptions {
  poolMode?: "transaction" | "session" | "statement";
  /** Server connections per database. @defaultValue 20 */
  poolSize?: number;
  /** More lines for the section `[pgbouncer]`. */
  settings?: Record<string, string | number>;
}

/** Whether `startPgBouncer` can work here: tests that need it are left out elsewhere, and the run says so. */
export function pgBouncerAvailable(): boolean {
  return findPgBouncer() !== undefined;
}

function configuration(target: URL, port: number, options: PgBouncerOptions): string {
  const { hostname, port: serverPort, username, password, pathname } = target;
  const server = `host=${hostname} port=${serverPort || 5432} dbname=${pathname.slice(1)}`;
  const login = `user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`;
  const settings = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    // Whoever asks gets the login of the database's line: this is a proxy for one test.
    auth_type: "any",
    pool_mode: options.poolMode ?? "transaction",
    default_pool_size: options.poolSize ?? 20,
    max_client_conn: 500,
    ignore_startup_parameters: "extra_float_digits,options",
    ...options.settings,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  return ["[databases]", `* = ${server} ${login}`, "[pgbouncer]", ...lines, ""].join("\n");
}

/** It refuses to run as root, as PostgreSQL does. */
function writeConfiguration(text: string): { folder: string; file: string } {
  const folder = mkdtempSync(join(tmpdir(), "idemkit-pgbouncer-"));
  const file = join(folder, `${randomUUID()}.ini`);
  writeFileSync(file, text, { mode: 0o600 });
  const user = serverUser();
  if (user) {
    chownSync(file, user.uid, user.gid);
    chmodSync(folder, 0o755);
  }
  return { folder, file };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
    socket.once("connect", () => socket.destroy());
  });
}

function watch(
  child: ChildProcess,
  folder: string,
): { exited: Promise<void>; log: () => string; over: () => boolean } {
  let log = "";
  let over = false;
  child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const guards = [guardProcess(child.pid ?? 0, { signal: "KILL" }), guardFolder([folder])];
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => {
      over = true;
      for (const callOff of guards) callOff();
      rmSync(folder, { recursive: true, force: true });
      resolve();
    });
  });
  return { exited, log: () => log, over: () => over };
}

/** A real PgBouncer in front of the database. */
export async function startPgBouncer(
  connectionString: string,
  options: PgBouncerOptions = {},
): Promise<PgBouncer> {
  const program = findPgBouncer();
  if (program === undefined) {
    throw new Error("there is no pgbouncer on PATH: guard the test with pgBouncerAvailable()");
  }
  const port = await freePort();
  const target = new URL(connectionString);
  const { folder, file } = writeConfiguration(configuration(target, port, options));
  const child = spawn(program, [file], { cwd: "/", stdio: ["ignore", "ignore", "pipe"], ...serverUser() });
  const { exited, log, over } = watch(child, folder);
  await until(
    () => {
      if (over()) throw new Error(`pgbouncer ended:\n${log()}`);
      return accepts(port);
    },
    { what: "pgbouncer listening" },
  );
  const stop = async (): Promise<void> => {
    if (!over()) child.kill("SIGKILL");
    await exited;
  };
  return {
    connectionString: databaseUrl(`postgres://any@127.0.0.1:${port}/`, target.pathname.slice(1)),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

// What the torture plays with: a database, a provider and two processes of the service, each of them its own to kill.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { migrate } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { startPostgres } from "../../../scripts/embedded-postgres.mjs";
import { guardProcess } from "../../../scripts/process/guard.mjs";
import { migratePayments } from "../../../services/payments/dist/adapters/out/postgres/migrate.js";
import { AUDIENCE, ISSUER, openIssuerKeys } from "../../../services/payments/dist/dev/issuer-keys.js";
import { startIssuer } from "../../../services/payments/dist/dev/issuer.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** Short enough that a run sees many of them end. */
export const leaseMs = 1500;

/** What the provider can do; the service is told the truth about keys. */
export const providers = [
  { name: "honours keys, can be asked", honoursKeys: true, lookUp: true },
  { name: "honours keys, can't be asked", honoursKeys: true, lookUp: false },
  { name: "ignores keys, can be asked", honoursKeys: false, lookUp: true },
  { name: "ignores keys, can't be asked", honoursKeys: false, lookUp: false },
];

/**
 * @typedef {object} Managed a process that comes back at the same place after a kill
 * @property {string} url
 * @property {() => Promise<void>} kill SIGKILL, and a new one
 * @property {(ms: number) => Promise<void>} pause SIGSTOP for so long
 * @property {() => void} end
 */

/**
 * @param {string} script
 * @param {Record<string, string>} env
 * @param {string} portName
 * @returns {Promise<Managed>}
 */
async function managed(script, env, portName) {
  let ended = false;
  const start = async (/** @type {string} */ port) => {
    const child = spawn(process.execPath, [join(root, script)], {
      cwd: root,
      env: { ...process.env, ...env, [portName]: port },
      stdio: ["ignore", "pipe", "inherit"],
    });
    guardProcess(child.pid ?? 0, { signal: "KILL" });
    /** @type {string} */
    const url = await new Promise((resolve, reject) => {
      child.once("exit", () => reject(new Error(`${script} ended`)));
      createInterface({ input: child.stdout }).on("line", (line) => {
        const found = /listening at (http:\/\/[\d.:]+)/.exec(line)?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    return { child, url };
  };
  let running = await start("0");
  const { url } = running;
  /** @type {Promise<void> | undefined} */
  let restarting;
  // Whoever killed it, or if it did so itself: it comes back.
  const watch = () => {
    running.child.once("exit", () => {
      if (!ended) restarting = restart();
    });
  };
  const restart = async () => {
    running = await start(new URL(url).port);
    watch();
  };
  watch();
  return {
    url,
    kill: async () => {
      const gone = once(running.child, "exit");
      running.child.kill("SIGKILL");
      await gone;
      await restarting;
    },
    pause: async (ms) => {
      const { child } = running;
      child.kill("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, ms));
      child.kill("SIGCONT");
    },
    end: () => {
      ended = true;
      running.child.kill("SIGKILL");
    },
  };
}

/**
 * @typedef {object} World
 * @property {pg.Pool} pool
 * @property {Managed} provider
 * @property {readonly Managed[]} services
 * @property {(sub: string) => Promise<string>} token
 * @property {() => Promise<void>} close
 */

/**
 * @param {(typeof providers)[number]} kind
 * @param {object} switches
 * @returns {Promise<World>}
 */
export async function openWorld(kind, switches) {
  const folder = mkdtempSync(join(tmpdir(), "payments-torture-"));
  const postgres = await startPostgres({
    dataDir: join(folder, "postgres"),
    settings: { max_connections: 100 },
    durable: false,
    temporary: true,
  });
  const pool = new pg.Pool({
    connectionString: postgres.connectionString,
    max: 8,
    connectionTimeoutMillis: 10_000,
  });
  pool.on("error", () => {});
  await migrate(fromPg(pool));
  await migratePayments(pool);
  const keys = await openIssuerKeys(folder);
  const issuer = await startIssuer(keys.publicKey);
  const { honoursKeys, lookUp } = kind;
  const provider = await managed(
    "services/payments/dist/provider/main.js",
    {
      PROVIDER_LEDGER: join(folder, "ledger.jsonl"),
      PROVIDER_SWITCHES: JSON.stringify({ ...switches, honoursKeys, lookUp }),
    },
    "PROVIDER_PORT",
  );
  const env = {
    DATABASE_URL: postgres.connectionString,
    ISSUER,
    AUDIENCE,
    JWKS_URL: issuer.jwksUrl,
    LOG_LEVEL: "info",
    PROVIDER_URL: provider.url,
    PROVIDER_HONOURS_KEYS: String(honoursKeys),
    PROVIDER_DEADLINE_MS: "800",
    PROVIDER_GRACE_MS: "1500",
    LEASE_MS: String(leaseMs),
    BACKGROUND_EVERY_MS: "100",
    UNCERTAIN_EVERY_MS: "500",
  };
  const services = [
    await managed("services/payments/dist/main.js", env, "PORT"),
    await managed("services/payments/dist/main.js", env, "PORT"),
  ];
  const close = async () => {
    for (const each of [...services, provider]) each.end();
    await issuer.stop();
    await pool.end();
    await postgres.remove();
    rmSync(folder, { recursive: true, force: true });
  };
  return { pool, provider, services, token: (sub) => keys.sign(sub, ["customer"]), close };
}

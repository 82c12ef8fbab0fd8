// What the torture plays with: a database, a provider and two processes of the service, each of them its own to kill.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { migrate } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { startPostgres } from "../../../scripts/embedded-postgres.mjs";
import { migratePayments } from "../../../services/payments/dist/adapters/out/postgres/migrate.js";
import { AUDIENCE, ISSUER, openIssuerKeys } from "../../../services/payments/dist/dev/issuer-keys.js";
import { startIssuer } from "../../../services/payments/dist/dev/issuer.js";
import { supervise } from "./supervised.mjs";

/** Short enough that a run sees many of them end. */
export const leaseMs = 1500;

/** What the provider can do; the service is told the truth about keys. */
export const providers = [
  { name: "honours keys, can be asked", honoursKeys: true, lookUp: true },
  { name: "honours keys, can't be asked", honoursKeys: true, lookUp: false },
  { name: "ignores keys, can be asked", honoursKeys: false, lookUp: true },
  { name: "ignores keys, can't be asked", honoursKeys: false, lookUp: false },
];

/** @typedef {import("./supervised.mjs").Supervised} Supervised */

/**
 * @typedef {object} World
 * @property {pg.Pool} pool
 * @property {Supervised} provider
 * @property {readonly Supervised[]} services
 * @property {(sub: string) => Promise<string>} token
 * @property {() => Promise<void>} close
 */

/**
 * @param {(typeof providers)[number]} kind
 * @param {{ seed: number } & Record<string, unknown>} options the provider's switches
 * @returns {Promise<World>}
 */
export async function openWorld(kind, { seed, ...switches }) {
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
  const provider = await supervise(
    "services/payments/dist/provider/main.js",
    (start) => ({
      PROVIDER_LEDGER: join(folder, "ledger.jsonl"),
      // Each start has faults of its own: the same ones again could have it die of its first request for ever.
      PROVIDER_SWITCHES: JSON.stringify({ ...switches, seed: 1000 * seed + start, honoursKeys, lookUp }),
    }),
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
    await supervise("services/payments/dist/main.js", () => env, "PORT"),
    await supervise("services/payments/dist/main.js", () => env, "PORT"),
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

import { tmpdir } from "node:os";
import { join } from "node:path";

import pg from "pg";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";
import { createDatabase } from "./database.mjs";
import { startPeer } from "./rpc.mjs";

/** @typedef {import("./rpc.mjs").Peer} Peer */

/**
 * @typedef {object} Bench
 * @property {import("../../scripts/embedded-postgres.d.mts").EmbeddedPostgres} postgres
 * @property {pg.Client} admin
 * @property {Peer} load
 * @property {readonly string[]} variants
 * @property {number} connections
 * @property {(cell: Pick<import("./plan.mjs").Cell, "variant" | "kind">) => Peer} serverOf
 * @property {(variant: string) => Promise<pg.Client>} connectTo a variant's database; the caller ends it
 * @property {() => Promise<void>} reconnect the administrator's connection, after a restart of the server
 * @property {() => Promise<void>} stop
 */

/**
 * Durable as it comes (fsync, synchronous_commit, full_page_writes). Vacuum is off, so that garbage can be counted, and
 * no checkpoint falls into a round, since it would cost whoever is running.
 */
const settings = { autovacuum: "off", checkpoint_timeout: "1h", max_wal_size: "8GB", max_connections: 400 };

/** @param {string} connectionString */
async function connect(connectionString) {
  const client = new pg.Client(connectionString);
  client.on("error", () => {}); // the server is stopped on purpose once
  await client.connect();
  return client;
}

/**
 * Starts PostgreSQL, a service for each variant with a database of its own, and the generator.
 * @param {import("./options.mjs").Options & { variants: readonly string[] }} options
 * @returns {Promise<Bench>}
 */
export async function startBench({ variants, poolSize, connections, flushMs }) {
  const dataDir = join(tmpdir(), `idemkit-bench-${process.pid}`);
  const slow = flushMs === 0 ? {} : { commit_delay: Math.round(flushMs * 1000), commit_siblings: 0 };
  const postgres = await startPostgres({ dataDir, settings: { ...settings, ...slow }, temporary: true });
  let admin = await connect(postgres.connectionString);
  /** @type {Map<string, string>} */
  const urls = new Map();
  /** @type {Map<string, Peer>} */
  const servers = new Map();
  for (const variant of variants) {
    const url = await createDatabase(admin, postgres.connectionString, variant);
    urls.set(variant, url);
    servers.set(variant, startPeer("server/main.mjs", [variant, url, String(poolSize)]));
  }
  const replica = urls.get("idemkit");
  if (replica !== undefined) {
    servers.set("elsewhere", startPeer("server/main.mjs", ["idemkit", replica, String(poolSize)]));
  }
  const load = startPeer("load/main.mjs");
  return {
    postgres,
    get admin() {
      return admin;
    },
    load,
    variants,
    connections,
    serverOf: ({ variant, kind }) => {
      const server = servers.get(kind === "elsewhere" ? kind : variant);
      if (server === undefined) throw new Error(`no server runs ${variant}`);
      return server;
    },
    connectTo: (variant) => connect(urls.get(variant) ?? ""),
    reconnect: async () => {
      admin = await connect(postgres.connectionString);
    },
    stop: async () => {
      await Promise.all([load, ...servers.values()].map((peer) => peer.stop()));
      await admin.end();
      await postgres.remove();
    },
  };
}

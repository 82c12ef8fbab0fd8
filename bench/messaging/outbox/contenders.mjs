import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { handwritten } from "./handwritten.mjs";
import { idemkit } from "./idemkit.mjs";

/** @typedef {import("./contender.mjs").Contender} Contender */
/** @typedef {{ name: string, count: number, create: (connectionString: string) => Promise<Contender> }} Entry */

const peers = fileURLToPath(new URL("../peers", import.meta.url));

function installPeers() {
  if (existsSync(`${peers}/node_modules/.package-lock.json`)) return;
  console.log("Installing what the relay is measured beside (npm ci in bench/messaging/peers) …");
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts"], { cwd: peers, stdio: "inherit" });
  if (status !== 0) throw new Error("npm ci failed in bench/messaging/peers");
}

/**
 * Everyone, with a backlog that takes each some seconds: rates do not depend on it as much as the patience does.
 * @returns {Promise<Entry[]>}
 */
export async function contenders() {
  installPeers();
  const [{ pgTransactionalOutbox }, { pgBoss }, { graphileWorker }] = await Promise.all([
    import("../peers/pg-transactional-outbox.mjs"),
    import("../peers/pg-boss.mjs"),
    import("../peers/graphile-worker.mjs"),
  ]);
  return [
    { name: "idemkit relay", count: 50_000, create: idemkit },
    { name: "by hand, one connection", count: 50_000, create: handwritten },
    { name: "pg-boss 10.4", count: 20_000, create: pgBoss },
    { name: "graphile-worker 0.16", count: 4000, create: graphileWorker },
    {
      name: "pg-transactional-outbox, tuned",
      count: 400,
      create: (url) => pgTransactionalOutbox(url, { tuned: true }),
    },
    {
      name: "pg-transactional-outbox, stock",
      count: 300,
      create: (url) => pgTransactionalOutbox(url, { tuned: false }),
    },
  ];
}

// The peers from npm live in bench/node_modules, by a lock file of their own: nothing of them is part of idemkit.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { npm } from "../../scripts/process/npm.mjs";

const bench = fileURLToPath(new URL("..", import.meta.url));

/** @param {string} path */
function packagesOf(path) {
  try {
    const { packages } = JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));
    delete packages[""];
    return JSON.stringify(packages);
  } catch {
    return undefined;
  }
}

/** Installs the peers where they are missing or not the locked ones. */
export function installPeers() {
  if (packagesOf("node_modules/.package-lock.json") === packagesOf("package-lock.json")) return;
  console.error("Installing the peers of the benchmark …");
  const { status } = npm(["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: bench,
  });
  if (status !== 0) {
    throw new Error("the peers can't be installed: see npm's message, or leave them out by --only");
  }
}

/**
 * A peer is loaded by a name that tools don't follow, since it may not be there.
 * @param {string} name
 * @returns {Promise<any>}
 */
export function importPeer(name) {
  return import(name);
}

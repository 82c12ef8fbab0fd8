// Makes a fresh clone ready to run: dependencies and build, each only where missing or out of date.
// Uses nothing but Node's own modules, and may run several times at once.
import { fileURLToPath } from "node:url";

import { build, isBuilt } from "./build.mjs";
import { install, isInstalled, noteInstalled } from "./install.mjs";
import { lock } from "./process/owner-lock.mjs";

const lockFile = fileURLToPath(new URL("../.cache/ensure.lock", import.meta.url));

function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Error(`Node.js ${process.versions.node} is too old: 20.19 or newer is needed`);
}

function prepare() {
  if (!isInstalled()) {
    console.error("Installing the dependencies (npm ci) …");
    if (!install()) throw new Error("npm ci failed: see its message above");
  }
  noteInstalled();
  if (isBuilt()) return;
  console.error("Building …");
  if (!build()) throw new Error("the build failed: see its messages above");
}

async function ensure() {
  requireNode();
  if (isInstalled() && isBuilt()) return;
  const held = await lock(lockFile, {
    onWait: ({ pid }) => console.error(`Waiting for process ${pid}, which is installing or building …`),
  });
  try {
    prepare();
  } finally {
    held.release();
  }
}

try {
  await ensure();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

// Runs npm, also from within a script that npm runs.
import { spawnSync } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Of the outer npm's settings only those that say where packages come from; not, say, `--prefix` or `--omit`. */
const kept =
  /^npm_config_(registry|userconfig|globalconfig|cache|proxy|https_proxy|noproxy|cafile|.*offline)$/i;

function cleanEnvironment() {
  const entries = Object.entries(process.env).filter(([name]) => {
    return kept.test(name) || !/^npm_(config|lifecycle|package|command)/i.test(name);
  });
  return { ...Object.fromEntries(entries), ...writableCache() };
}

/** A user without a home of their own gets a cache in the checkout. */
function writableCache() {
  const cache = process.env["npm_config_cache"] ?? join(homedir(), ".npm");
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
    return {};
  } catch {
    return { npm_config_cache: join(root, ".cache/npm") };
  }
}

/**
 * Runs npm with its output on ours, or collects it.
 * @param {string[]} args
 * @param {{ cwd?: string, stdio?: "inherit" | "pipe", env?: NodeJS.ProcessEnv }} [options]
 */
export function npm(args, { cwd = root, stdio = "inherit", env = {} } = {}) {
  const outer = process.env["npm_execpath"];
  const options = /** @type {const} */ ({
    cwd,
    stdio,
    encoding: "utf8",
    env: { ...cleanEnvironment(), ...env },
  });
  if (outer && basename(outer).startsWith("npm-cli")) {
    return spawnSync(process.execPath, [outer, ...args], options);
  }
  return spawnSync("npm", args, options);
}

// Everything that must hold beside the tests, two at a time; ends with one plain line of counts.
// `npm run check -- lint types` runs only the checks of these names.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { npm } from "./process/npm.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** @typedef {{ name: string, run: () => Promise<string | undefined> }} Check it resolves to what is wrong */

/**
 * @param {string} program a script of ours, or a package whose program has its name
 * @param {string[]} args
 */
function commandOf(program, args) {
  if (program.endsWith(".mjs")) return [program, ...args];
  const [name = program, binary = name.split("/").pop() ?? name] = program.split("#");
  const folder = join(root, "node_modules", name);
  const manifest = readFileSync(join(folder, "package.json"), "utf8");
  const { bin } = /** @type {{ bin: string | Record<string, string> }} */ (JSON.parse(manifest));
  const path = typeof bin === "string" ? bin : bin[binary];
  return [join(folder, path ?? ""), ...args];
}

/**
 * @param {string} program
 * @param {...string} args
 * @returns {Promise<string | undefined>} what it said, where it failed
 */
function node(program, ...args) {
  const child = spawn(process.execPath, commandOf(program, args), {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1" },
  });
  /** @type {string[]} */
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(String(chunk)));
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) =>
      resolve(code === 0 ? undefined : output.join("").trim() || `exit code ${code}`),
    );
  });
}

/** @param {...(() => Promise<string | undefined>)} steps */
async function inTurn(...steps) {
  for (const step of steps) {
    const fault = await step();
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const workspace = mkdtempSync(join(tmpdir(), "idemkit-check-"));
const tarball = join(workspace, "idemkit.tgz");

/**
 * Packed once, as npm would publish it; without its scripts, since the build is there and others read it now.
 * @returns {string | undefined} what is wrong
 */
function pack() {
  const { status, stderr } = npm(["pack", "--ignore-scripts", "--silent", "--pack-destination", workspace], {
    stdio: "pipe",
  });
  const packed = readdirSync(workspace).find((name) => name.endsWith(".tgz"));
  if (status !== 0 || packed === undefined) return stderr;
  renameSync(join(workspace, packed), tarball);
  return undefined;
}

/** @type {readonly Check[]} */
const checks = [
  { name: "format", run: () => node("oxfmt", "--check") },
  { name: "lint", run: () => node("oxlint", "--type-aware", "--format=unix") },
  { name: "layers", run: () => node("scripts/layers.mjs") },
  {
    name: "types",
    run: () =>
      inTurn(
        () => tsc("."),
        () => tsc("services/payments"),
        () => tsc("scripts"),
        () => tsc("test"),
      ),
  },
  {
    name: "generated",
    run: () =>
      inTurn(
        () => node("scripts/embed-sql.mjs", "--check"),
        () => node("scripts/docs.mjs", "--check"),
      ),
  },
  { name: "unit", run: () => node("vitest", "run", "--project", "unit", "--reporter", "dot") },
  { name: "client", run: () => node("scripts/client-bundle.mjs") },
  { name: "knip", run: () => node("knip") },
  { name: "publint", run: () => node("publint", "run", tarball, "--strict") },
  { name: "attw", run: () => node("@arethetypeswrong/cli#attw", tarball, "--profile", "esm-only") },
  { name: "package", run: () => node("test/package/check-package.mjs", tarball) },
];

/** @param {string} project */
function tsc(project) {
  return node("typescript#tsc", "--noEmit", "-p", project);
}

/**
 * @param {Check} check
 * @returns {Promise<boolean>}
 */
async function report({ name, run }) {
  const started = performance.now();
  const fault = await run();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${fault === undefined ? "ok  " : "FAIL"} ${name} (${seconds} s)`);
  if (fault !== undefined) console.log(fault.replaceAll(/^/gm, "     "));
  return fault === undefined;
}

/** @param {readonly Check[]} wanted */
async function runAll(wanted) {
  const queue = [...wanted];
  /** @type {boolean[]} */
  const results = [];
  const worker = async () => {
    for (let check = queue.shift(); check; check = queue.shift()) results.push(await report(check));
  };
  await Promise.all([worker(), worker()]);
  return results;
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !checks.some((check) => check.name === name));
if (unknown.length > 0) throw new Error(`no check is called ${unknown.join(", ")}`);
try {
  const packFault = pack();
  if (packFault !== undefined) console.log(`FAIL pack\n${packFault}`);
  const results = await runAll(names.length > 0 ? checks.filter(({ name }) => names.includes(name)) : checks);
  const failed = results.filter((ok) => !ok).length + (packFault === undefined ? 0 : 1);
  console.log(`${results.filter(Boolean).length} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
} finally {
  rmSync(workspace, { recursive: true, force: true });
}

// Installs the packed package into a tiny project, without a network, and uses it as a user would.
// Its argument is the tarball.
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { npm } from "../../scripts/process/npm.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const project = mkdtempSync(join(tmpdir(), "idemkit-consumer-"));

/** @typedef {{ exports: Record<string, unknown>, dependencies: Record<string, string>, version: string }} Manifest */

const manifest = /** @type {Manifest} */ (JSON.parse(readFileSync(join(root, "package.json"), "utf8")));

/**
 * @param {string} what
 * @param {string} program
 * @param {...string} args
 */
function run(what, program, ...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: project, encoding: "utf8" });
  if (status !== 0) throw new Error(`${what} failed:\n${stdout}${stderr}`);
  return stdout;
}

/** @param {...string} args */
function npmIn(...args) {
  const { status, stdout, stderr } = npm(args, { cwd: project, stdio: "pipe" });
  if (status !== 0) throw new Error(`npm ${args[0]} failed:\n${stdout}${stderr}`);
}

/** The dependencies are packed from what is installed here: an offline install needs no filled cache. */
function packDependencies() {
  return Object.fromEntries(
    Object.keys(manifest.dependencies).map((name) => {
      const folder = join(project, "dependencies", name);
      mkdirSync(folder, { recursive: true });
      npmIn(
        "pack",
        "--ignore-scripts",
        "--silent",
        "--pack-destination",
        folder,
        join(root, "node_modules", name),
      );
      return [name, `file:${join(folder, readdirSync(folder)[0] ?? "")}`];
    }),
  );
}

/** @param {string} tarball */
function install(tarball) {
  cpSync(join(root, "test/package/consumer"), project, { recursive: true });
  copyFileSync(tarball, join(project, "idemkit.tgz"));
  const dependencies = packDependencies();
  const consumer = {
    private: true,
    type: "module",
    dependencies: { idemkit: "file:idemkit.tgz", ...dependencies },
    overrides: Object.fromEntries(Object.keys(dependencies).map((name) => [name, `$${name}`])),
  };
  writeFileSync(join(project, "package.json"), JSON.stringify(consumer));
  npmIn("install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=peer");
}

/** A type-check of a user's code needs a compiler and Node's types, which the user would have installed. */
function checkTypes() {
  mkdirSync(join(project, "node_modules/@types"), { recursive: true });
  for (const name of ["@types/node", "undici-types"]) {
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  }
  run("tsc", process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", project);
}

function checkContents() {
  const installed = join(project, "node_modules/idemkit");
  const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
  const unwanted = files.filter((file) => /\.test\.|build-stamp|tsbuildinfo/.test(file));
  if (unwanted.length > 0) {
    throw new Error(`the package holds files that are none of a user's:\n${unwanted.join("\n")}`);
  }
  for (const name of ["LICENSE", "README.md", "package.json"]) {
    if (!files.includes(name)) throw new Error(`the package has no ${name}`);
  }
}

/** @param {string} tarball */
function check(tarball) {
  install(tarball);
  checkContents();
  const subpaths = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));
  run(
    "importing every entry",
    process.execPath,
    "imports.mjs",
    ...subpaths.map((path) => `idemkit${path.slice(1)}`),
  );
  const sql = run("npx idemkit migrate --print", "npx", "--offline", "idemkit", "migrate", "--print");
  if (!/create table/i.test(sql)) throw new Error(`idemkit migrate --print printed no table:\n${sql}`);
  checkTypes();
}

try {
  check(process.argv[2] ?? "");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(project, { recursive: true, force: true });
}

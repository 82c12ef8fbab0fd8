// Builds the package and the workspaces that use it, and notes from which sources.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stampFile = join(root, "dist/.build-stamp");
const projects = [root, join(root, "services/payments")];

/** What decides about the result beside the sources. */
const settings = [
  "package-lock.json",
  "tsconfig.json",
  "services/payments/tsconfig.json",
  "scripts/embed-sql.mjs",
];

/**
 * @param {string} folder
 * @returns {string[]} the files below it, in an order that doesn't depend on the file system
 */
function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Contents, not times: a checkout sets the times of files as it likes. */
function sourcesHash() {
  const hash = createHash("sha256");
  const sources = projects.flatMap((project) => filesBelow(join(project, "src")));
  const files = [...settings.map((file) => join(root, file)), ...sources];
  for (const file of files.filter((name) => !name.endsWith(".test.ts"))) {
    const content = readFileSync(file);
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** @returns {boolean} whether the built files are those of the present sources */
export function isBuilt() {
  if (!existsSync(stampFile) || !projects.every((project) => existsSync(join(project, "dist")))) return false;
  return readFileSync(stampFile, "utf8") === sourcesHash();
}

/**
 * What was built from a source that is gone would still be packed, and imported.
 * @param {string} project
 */
function removeOrphans(project) {
  const dist = join(project, "dist");
  for (const file of filesBelow(dist)) {
    const source = join(project, "src", relative(dist, file).replace(/(\.d)?\.[jt]s(\.map)?$/, ".ts"));
    if (file !== stampFile && !existsSync(source)) rmSync(file);
  }
}

/** @param {string[]} args */
function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  return status === 0;
}

/** @returns {boolean} whether everything was built without an error */
export function build() {
  rmSync(stampFile, { force: true });
  if (!run("scripts/embed-sql.mjs")) return false;
  // Taken before the compiler reads them: a source that changes meanwhile has us build again next time.
  const hash = sourcesHash();
  const compiled = projects.map((project) => run("node_modules/typescript/bin/tsc", "-p", project));
  const built = compiled.every(Boolean);
  projects.forEach(removeOrphans);
  if (built) writeFileSync(stampFile, hash);
  return built;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href && !build()) process.exitCode = 1;

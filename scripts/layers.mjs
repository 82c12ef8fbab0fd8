// The direction of imports: internal <- core <- the rest. Checks where an import leads, not how it is spelled.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The entries of the package, which is all that `cli` and `console` may use. */
const publicEntries = [
  "index",
  "pg",
  "http",
  "fastify",
  "express",
  "hono",
  "fetch",
  "node",
  "kafka",
  "kafkajs",
  "platformatic",
  "confluent",
  "webhook",
  "client",
];

/**
 * Which layers each layer may import beside itself. A layer is the first folder below `src`, or a file there.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const layers = {
  "error-catalogue": [],
  errors: ["error-catalogue"],
  internal: ["errors"],
  core: ["errors", "internal"],
  postgres: ["errors", "internal", "core"],
  outbox: ["errors", "internal", "core", "postgres"],
  inbox: ["errors", "internal", "core", "postgres", "outbox"],
  effects: ["errors", "internal", "core", "postgres"],
  saga: ["errors", "internal", "core", "postgres", "outbox", "effects"],
  http: ["errors", "internal", "core", "postgres", "effects"],
  webhook: ["errors", "internal", "core", "postgres", "inbox", "http"],
  kafka: ["errors", "internal", "core", "postgres", "inbox"],
  kafkajs: ["errors", "internal", "core", "kafka"],
  platformatic: ["errors", "internal", "core", "kafka"],
  confluent: ["errors", "internal", "core", "kafka"],
  client: ["errors", "internal"],
  maintenance: ["errors", "internal", "core", "postgres", "inbox"],
  pg: ["errors", "internal", "core", "postgres"],
  index: ["errors", "internal", "core", "postgres", "maintenance", "outbox", "inbox", "effects", "saga"],
  fastify: ["errors", "internal", "core", "http", "effects"],
  express: ["errors", "internal", "core", "http", "effects"],
  hono: ["errors", "internal", "core", "http", "effects"],
  fetch: ["errors", "internal", "core", "http", "effects"],
  node: ["errors", "internal", "core", "http", "effects"],
  cli: publicEntries,
  console: publicEntries,
  testing: [
    ...publicEntries,
    "errors",
    "internal",
    "core",
    "postgres",
    "maintenance",
    "outbox",
    "inbox",
    "effects",
    "saga",
  ],
};

/** Inside the service: the core knows no adapter, and nothing that does I/O. */
const service = "services/payments/src";
const serviceCorePackages = /^(node:crypto|decimal\.js|big\.js)$/;

/** @param {string} folder */
function sources(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name).split(sep).join("/"))
    .filter((name) => /\.[cm]?tsx?$/.test(name));
}

/** @param {string} file */
function importsOf(file) {
  const text = readFileSync(join(root, file), "utf8");
  const pattern =
    /(?:^|\n)\s*(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)|\bimport\s+"([^"]+)"/g;
  return [...text.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

/**
 * @param {string} file
 * @param {string} specifier
 * @returns {string | undefined} the path of a relative import from the root
 */
function targetOf(file, specifier) {
  if (!specifier.startsWith(".")) return undefined;
  return relative(root, resolve(root, dirname(file), specifier))
    .split(sep)
    .join("/");
}

/** @param {string} path below `src/` */
function layerOf(path) {
  return (path.split("/")[1] ?? "").replace(/(\.test)?\.[cm]?tsx?$/, "");
}

/**
 * @param {string} file
 * @param {string} specifier
 */
function faultInLibrary(file, specifier) {
  const target = targetOf(file, specifier);
  if (target === undefined) {
    return specifier.split("/")[0] === "idemkit" ? "imports the package by its own name" : "";
  }
  if (!target.startsWith("src/")) return "leaves src";
  const [from, to] = [layerOf(file), layerOf(target)];
  if (from === to) return "";
  // A layer's own tests may use what we offer for tests.
  if (file.endsWith(".test.ts") && to === "testing") return "";
  const allowed = layers[from];
  if (allowed === undefined) return `${from} is not in the table of scripts/layers.mjs`;
  return allowed.includes(to) ? "" : `${from} must not import ${to}`;
}

/**
 * @param {string} file
 * @param {string} specifier
 */
function faultInService(file, specifier) {
  const target = targetOf(file, specifier);
  const inCore = file.startsWith(`${service}/core/`) && !file.endsWith(".test.ts");
  if (target === undefined) {
    return inCore && !serviceCorePackages.test(specifier) ? "the core imports nothing that does I/O" : "";
  }
  if (target.startsWith("src/") || target.startsWith("dist/")) return "services import idemkit by its name";
  return inCore && !target.startsWith(`${service}/core/`) ? "the core imports no adapter" : "";
}

/**
 * @param {string} folder
 * @param {(file: string, specifier: string) => string} faultIn
 */
function check(folder, faultIn) {
  return sources(folder).flatMap((file) =>
    importsOf(file).flatMap((specifier) => {
      const fault = faultIn(file, specifier);
      return fault ? [`${file}: "${specifier}": ${fault}`] : [];
    }),
  );
}

const faults = [...check("src", faultInLibrary), ...check(service, faultInService)];
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

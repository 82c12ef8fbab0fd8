// Apache Kafka from Maven's artifacts, kept in the user's cache by version.
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { lock } from "../process/owner-lock.mjs";

/** Needs Java 17. */
export const kafkaVersion = "4.3.1";

const pom = fileURLToPath(new URL("pom.xml", import.meta.url));
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

function jarFolder() {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  return join(cache, "idemkit", `kafka-${kafkaVersion}`);
}

/** @returns {string} the path of Java's launcher */
export function javaCommand() {
  const home = process.env["JAVA_HOME"];
  return home ? join(home, "bin/java") : "java";
}

/** @returns {boolean} whether there is a Java that can run the broker */
function hasJava() {
  const { status, stderr } = spawnSync(javaCommand(), ["-version"], { encoding: "utf8" });
  const major = Number(/version "(\d+)/.exec(stderr ?? "")?.[1]);
  return status === 0 && major >= 17;
}

/** @returns {string | undefined} why no broker can be had from Maven's artifacts here; nothing where one can */
export function whyNoJars() {
  if (!hasJava()) return "no Java 17 or newer";
  if (existsSync(jarFolder())) return undefined;
  return spawnSync("mvn", ["-version"], { stdio: "ignore" }).status === 0 ? undefined : "no Maven";
}

/** @param {string} folder */
async function download(folder) {
  const args = ["-q", "-B", "-f", pom, copyDependencies, "-DincludeScope=runtime"];
  const settings = [`-Dkafka.version=${kafkaVersion}`, `-DoutputDirectory=${folder}`];
  const child = spawn("mvn", [...args, ...settings], { stdio: ["ignore", "pipe", "pipe"] });
  /** @type {unknown[]} */
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(chunk));
  /** @type {number | null} */
  const status = await new Promise((resolve) => {
    child.once("close", resolve);
  });
  if (status !== 0) {
    throw new Error(`Maven could not bring Kafka ${kafkaVersion}:\n${output.join("").slice(-2000)}`);
  }
}

/**
 * Brings the jars where they are missing. Several processes at once are safe: one downloads, the others wait.
 * @returns {Promise<string>} the folder of the jars
 */
export async function kafkaJars() {
  const folder = jarFolder();
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const held = await lock(`${folder}.lock`);
  const draft = `${folder}.${randomUUID()}`;
  try {
    if (existsSync(folder)) return folder;
    await download(draft);
    // The folder is there whole or not at all.
    renameSync(draft, folder);
    return folder;
  } finally {
    rmSync(draft, { recursive: true, force: true });
    held.release();
  }
}

// A real Apache Kafka of one node (KRaft) for tests and for `npm start -- --kafka`: started, stopped, killed and
// started again on the same data.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { freePort } from "../process/free-port.mjs";
import { guardFolder, guardProcess } from "../process/guard.mjs";
import { javaCommand, kafkaJars } from "./jars.mjs";
import { isServing } from "./metadata.mjs";
import { fixedSettings } from "./settings.mjs";

/** @typedef {{ dataDir?: string, port?: number, settings?: Record<string, string | number | boolean> }} BrokerOptions */
/** @typedef {{ pid: number, exited: Promise<void>, hasExited: () => boolean }} BrokerProcess */

/**
 * @typedef {object} Broker
 * @property {number} port the same one after each start
 * @property {string} brokers for a client: `host:port`
 * @property {number} pid another one after each start
 * @property {() => Promise<void>} start does nothing while it runs; the port and the data stay
 * @property {() => Promise<void>} stop SIGTERM, and SIGKILL where that takes too long
 * @property {() => Promise<void>} kill SIGKILL
 * @property {() => Promise<void>} remove kills it and removes its data
 */

/** Small and quick to start: one machine runs this beside everything else. */
const heap = [
  "-Xms128m",
  "-Xmx384m",
  "-XX:+UseSerialGC",
  "-XX:TieredStopAtLevel=1",
  "-Xshare:auto",
  "-XX:-UsePerfData",
];
const logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Djava.awt.headless=true"];

/** A clean stop writes everything out, which a broker of this size does in a second or two. */
const stopMs = 15_000;
const startMs = 60_000;

/**
 * @param {string} folder
 * @param {{ port: number, controllerPort: number }} ports
 * @param {Record<string, string | number | boolean>} settings
 */
function writeProperties(folder, { port, controllerPort }, settings) {
  const listeners = `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`;
  const all = {
    ...fixedSettings,
    listeners,
    "advertised.listeners": listeners,
    "controller.quorum.bootstrap.servers": `127.0.0.1:${controllerPort}`,
    "log.dirs": join(folder, "data"),
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}=${value}`);
  const file = join(folder, "server.properties");
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

/**
 * @param {string} jars
 * @param {string[]} args
 */
const javaArguments = (jars, args) => [...heap, ...logging, "-cp", join(jars, "*"), ...args];

/**
 * @param {string} jars
 * @param {string} folder
 * @param {string} properties
 */
function format(jars, folder, properties) {
  if (existsSync(join(folder, "data/meta.properties"))) return;
  const clusterId = randomBytes(16).toString("base64url");
  // In one word: an id may begin with a dash.
  const id = `--cluster-id=${clusterId}`;
  const args = ["kafka.tools.StorageTool", "format", "--standalone", id, "-c", properties];
  const { status, stdout, stderr } = spawnSync(javaCommand(), javaArguments(jars, args), {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Kafka's storage could not be formatted:\n${stdout}${stderr}`);
}

/**
 * Detached, so that Ctrl-C in a terminal reaches us alone and we choose the order of stopping.
 * @param {string} jars
 * @param {string} folder
 * @param {{ properties: string, removePaths: string[] }} options
 * @returns {BrokerProcess}
 */
function launch(jars, folder, { properties, removePaths }) {
  const log = openSync(join(folder, "broker.log"), "a");
  const args = javaArguments(jars, ["kafka.Kafka", properties]);
  const child = spawn(javaCommand(), args, { cwd: folder, detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  if (child.pid === undefined) throw new Error("Java could not be started");
  // The folder goes after the process: both guards wait for the same death.
  const guards = [guardProcess(child.pid, { signal: "KILL" }), guardFolder(removePaths)];
  const callOff = () => guards.forEach((each) => each());
  let over = false;
  /** @type {Promise<void>} */
  const exited = new Promise((resolve) => {
    child.once("exit", () => {
      over = true;
      callOff();
      resolve();
    });
  });
  return { pid: child.pid, exited, hasExited: () => over };
}

/**
 * @param {BrokerProcess} broker
 * @param {number} port
 * @param {string} folder
 */
async function serving(broker, port, folder) {
  for (const deadline = Date.now() + startMs; Date.now() < deadline;) {
    if (broker.hasExited()) break;
    if (await isServing(port)) return;
    await delay(50);
  }
  const log = readFileSync(join(folder, "broker.log"), "utf8").split("\n").slice(-15).join("\n");
  throw new Error(`Kafka did not start on port ${port}:\n${log}`);
}

/**
 * @param {BrokerProcess} broker
 * @param {number} waitMs
 */
async function endsWithin(broker, waitMs) {
  const timer = new AbortController();
  await Promise.race([broker.exited, delay(waitMs, undefined, { signal: timer.signal }).catch(() => {})]);
  timer.abort();
  return broker.hasExited();
}

/** @param {BrokerProcess} broker */
async function kill(broker) {
  if (!broker.hasExited()) process.kill(broker.pid, "SIGKILL");
  await broker.exited;
}

/**
 * Starts a broker, and resolves when it serves. Without a `dataDir` its data is gone with this process, however
 * that ends.
 * @param {BrokerOptions} [options]
 * @returns {Promise<Broker>}
 */
export async function startBroker({ dataDir, port: fixedPort, settings = {} } = {}) {
  const jars = await kafkaJars();
  const folder = dataDir ?? join(tmpdir(), `idemkit-kafka-${randomUUID()}`);
  mkdirSync(folder, { recursive: true });
  const port = fixedPort ?? (await freePort());
  const properties = writeProperties(folder, { port, controllerPort: await freePort() }, settings);
  format(jars, folder, properties);
  const options = { properties, removePaths: dataDir === undefined ? [folder] : [] };

  const run = async () => {
    const started = launch(jars, folder, options);
    try {
      await serving(started, port, folder);
      return started;
    } catch (error) {
      await kill(started);
      throw error;
    }
  };

  let broker = await run();
  return {
    port,
    brokers: `127.0.0.1:${port}`,
    get pid() {
      return broker.pid;
    },
    start: async () => {
      if (broker.hasExited()) broker = await run();
    },
    stop: async () => {
      if (!broker.hasExited()) process.kill(broker.pid, "SIGTERM");
      if (!(await endsWithin(broker, stopMs))) await kill(broker);
    },
    kill: () => kill(broker),
    remove: async () => {
      await kill(broker);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

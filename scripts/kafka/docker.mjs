// The same broker in a container, where there is Docker and no Java or no Maven.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import { freePort } from "../process/free-port.mjs";
import { kafkaVersion } from "./jars.mjs";
import { isServing } from "./metadata.mjs";
import { fixedSettings } from "./settings.mjs";

/** @typedef {import("./broker.mjs").Broker} Broker */

/** @param {string[]} args */
function docker(...args) {
  const { status, stdout, stderr } = spawnSync("docker", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`docker ${args[0]} failed: ${stderr}`);
  return stdout.trim();
}

/** @returns {string | undefined} why no broker can be had from Docker here; nothing where one can */
export function whyNoDocker() {
  return spawnSync("docker", ["info"], { stdio: "ignore" }).status === 0 ? undefined : "no Docker";
}

/** @param {number} port */
async function serving(port) {
  for (const deadline = Date.now() + 120_000; Date.now() < deadline;) {
    if (await isServing(port)) return;
    await delay(100);
  }
  throw new Error(`Kafka in Docker did not start on port ${port}`);
}

/** @param {number} port of this machine, which is also the one that the broker tells its clients */
function environment(port) {
  const settings = {
    ...fixedSettings,
    listeners: `PLAINTEXT://:${port},CONTROLLER://:9093`,
    "advertised.listeners": `PLAINTEXT://127.0.0.1:${port}`,
    "controller.quorum.voters": "1@localhost:9093",
  };
  return Object.entries(settings).flatMap(([name, value]) => [
    "-e",
    `KAFKA_${name.toUpperCase().replaceAll(".", "_")}=${value}`,
  ]);
}

/** @returns {Promise<Broker>} */
export async function startDockerBroker() {
  const port = await freePort();
  const name = `idemkit-kafka-${randomUUID()}`;
  docker(
    "run",
    "-d",
    "--name",
    name,
    "-p",
    `127.0.0.1:${port}:${port}`,
    ...environment(port),
    `apache/kafka:${kafkaVersion}`,
  );
  await serving(port);
  return {
    port,
    brokers: `127.0.0.1:${port}`,
    pid: Number(docker("inspect", "-f", "{{.State.Pid}}", name)),
    start: async () => {
      docker("start", name);
      await serving(port);
    },
    stop: async () => void docker("stop", name),
    kill: async () => void docker("kill", name),
    remove: async () => void docker("rm", "-f", "-v", name),
  };
}

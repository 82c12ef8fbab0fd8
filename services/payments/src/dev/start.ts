import { once } from "node:events";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { integer } from "../config.ts";
import { openDevBroker } from "./broker.ts";
import { openDevDatabase, openMigrated } from "./database.ts";
import { startEventProcesses } from "./event-processes.ts";
import { AUDIENCE, ISSUER, openIssuerKeys } from "./issuer-keys.ts";
import { startIssuer } from "./issuer.ts";
import { dataFolder, providerMain, serviceMain } from "./places.ts";
import { requireFreePort } from "./port.ts";
import { printCurlLines } from "./curl-lines.ts";
import { stopSignal } from "./stop-signal.ts";
import { startServiceProcess } from "./service-process.ts";
import type { ServiceProcess } from "./service-process.ts";
import { runTranscript } from "./transcript.ts";

type Cleanup = () => Promise<void>;

const logLevel = process.env["LOG_LEVEL"] ?? "warn";

/** Brings everything up, shows it at work and waits; what was started is on `cleanups`, in that order. */
const run = async (stopped: AbortSignal, cleanups: Cleanup[]): Promise<void> => {
  // `npm start -- --kafka` has the events go over Kafka.
  const { kafka = false } = parseArgs({ options: { kafka: { type: "boolean" } } }).values;
  const port = integer(process.env, "PORT", { fallback: 3000, min: 1, max: 65_535 });
  const folder = dataFolder(port);
  await requireFreePort(port);
  const database = await openDevDatabase(folder);
  cleanups.push(() => database.stop());
  stopped.throwIfAborted();

  const pool = await openMigrated(database.connectionString);
  cleanups.push(() => pool.end());
  const keys = await openIssuerKeys(folder);
  const issuer = await startIssuer(keys.publicKey);
  cleanups.push(() => issuer.stop());
  stopped.throwIfAborted();

  const provider = await startProvider(folder);
  cleanups.push(() => provider.stop());
  stopped.throwIfAborted();

  const start = (): Promise<ServiceProcess> =>
    startServiceProcess(serviceMain, {
      DATABASE_URL: database.connectionString,
      PORT: String(port),
      ISSUER,
      AUDIENCE,
      JWKS_URL: issuer.jwksUrl,
      LOG_LEVEL: logLevel,
      ...providerSettings(provider.url),
    });
  let service = await start();
  cleanups.push(() => service.stop());
  say(`Payments service on ${service.url}, ${database.description}`);

  const broker = kafka ? await openDevBroker() : undefined;
  cleanups.push(async () => broker?.stop());
  stopped.throwIfAborted();
  const { connectionString } = database;
  const events = await startEventProcesses({ connectionString, logLevel, brokers: broker?.brokers });
  cleanups.push(() => events.stop());
  say(
    `Events go ${broker === undefined ? "to consumers in the relay's process" : `over Kafka at ${broker.brokers}`}`,
  );

  const restart = async (): Promise<void> => {
    await service.ended;
    service = await start();
  };
  const scene = {
    pool,
    keys,
    providerUrl: provider.url,
    url: service.url,
    stopped,
    restart,
    kill: () => service.kill(),
    say,
  };
  await runTranscript(scene, events);
  await printCurlLines(scene);
  await Promise.race([once(stopped, "abort"), service.ended]);
  if (!stopped.aborted) {
    throw new Error("the service ended by itself");
  }
};

const startProvider = (folder: string): Promise<ServiceProcess> =>
  startServiceProcess(providerMain, { PROVIDER_LEDGER: join(folder, "provider.jsonl") });

/** It is asked what became of a call, and takes no keys: that shows more. */
const providerSettings = (url: string): Record<string, string> => ({
  PROVIDER_URL: url,
  PROVIDER_HONOURS_KEYS: "false",
  PROVIDER_DEADLINE_MS: "1000",
  PROVIDER_GRACE_MS: "500",
});

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const stopped = stopSignal();
// Whoever read us may be gone, as with a killed npm; that is no reason to leave without cleaning up.
process.stdout.on("error", () => {});
const cleanups: Cleanup[] = [];
let exitCode = 0;
try {
  await run(stopped, cleanups);
} catch (error) {
  if (!stopped.aborted) {
    process.stderr.write(`npm start: ${error instanceof Error ? error.message : String(error)}\n`);
    exitCode = 1;
  }
}
for (const cleanup of cleanups.toReversed()) {
  await cleanup();
}
process.exit(exitCode);

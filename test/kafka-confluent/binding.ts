import { createRequire } from "node:module";

import { fromConfluent } from "idemkit/confluent";
import type { ConfluentModule } from "idemkit/confluent";

import type { Binding } from "../integration/kafka/support/clients.ts";
import { kafkaBrokers } from "../support/kafka.ts";

const require = createRequire(import.meta.url);

/** The client is there only where this folder's dependencies were installed. */
function load(): ConfluentModule | undefined {
  try {
    return require("@confluentinc/kafka-javascript") as ConfluentModule;
  } catch (error) {
    if ((error as { code?: unknown }).code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

const module = load();

/** Confluent's client behind the port. */
export const confluentBinding: Binding = {
  name: "@confluentinc/kafka-javascript",
  installed: module !== undefined,
  connect: (brokers = kafkaBrokers()) => {
    if (module === undefined) throw new Error("not installed: run scripts/kafka/install-confluent.mjs");
    return fromConfluent(module, { connection: { "bootstrap.servers": brokers } });
  },
};

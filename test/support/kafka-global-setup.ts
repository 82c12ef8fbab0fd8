import type { TestProject } from "vitest/node";

import { sharedBroker, whyNoKafka } from "../../scripts/kafka/provide.mjs";

declare module "vitest" {
  export interface ProvidedContext {
    /** `host:port` of the broker that all files share; empty where there is none. */
    kafkaBrokers: string;
  }
}

/** Starts the one broker. Where there can be none its tests are skipped, and the run says so; CI must not skip. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const why = whyNoKafka();
  if (why !== undefined) {
    if (process.env["CI"]) throw new Error(`the tests on Kafka must not be left out in CI: ${why}`);
    project.provide("kafkaBrokers", "");
    return undefined;
  }
  const { brokers, close } = await sharedBroker();
  project.provide("kafkaBrokers", brokers);
  return close;
}

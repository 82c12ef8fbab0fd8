import { kafkaPublisher } from "idemkit/kafka";
import { describe, expect, test } from "vitest";

import { spawnProcess, until } from "../../support/index.ts";
import { createTopic, kafkaAvailable, kafkaBrokers } from "../../support/kafka.ts";
import { kafkaJsBinding } from "./support/clients.ts";
import { eventOf } from "./support/events.ts";
import { createLedger, inversions } from "./support/ledger.ts";

describe.skipIf(!kafkaAvailable())("a consumer process that is killed", () => {
  test("between its database commit and its offset commit leaves duplicates, which take no effect again", async () => {
    await using ledger = await createLedger();
    const topic = await createTopic({ partitions: 2 });
    const events = Array.from({ length: 60 }, (_, at) => eventOf(topic.name, `order-${at % 6}`, at));
    await using publisher = kafkaPublisher(kafkaJsBinding.connect());
    await publisher.publish(events);
    const env = { DATABASE_URL: ledger.database.connectionString, KAFKA: kafkaBrokers(), TOPIC: topic.name };
    await using first = spawnProcess("test/integration/kafka/processes/consumer.mjs", {
      env: { ...env, HOLD_COMMITS: "1" },
    });
    await first.waitForLine(/^executed 60$/);
    await first.kill("SIGKILL");
    expect(first.lines).not.toContain("committed");
    expect((await topic.committed(topic.groupOf("ledger"))).every((offset) => offset <= 0)).toBe(true);

    await using second = spawnProcess("test/integration/kafka/processes/consumer.mjs", { env });
    await second.waitForLine(/^duplicate 60$/);
    await topic.drained("ledger");
    const effects = await ledger.effects();
    expect(effects).toHaveLength(60);
    expect(inversions(effects)).toEqual([]);
  });

  test("that was only paused finds its partitions taken, and neither its commits nor its events take effect again", async () => {
    await using ledger = await createLedger();
    const topic = await createTopic({ partitions: 2 });
    const env = { DATABASE_URL: ledger.database.connectionString, KAFKA: kafkaBrokers(), TOPIC: topic.name };
    await using publisher = kafkaPublisher(kafkaJsBinding.connect());
    await using paused = spawnProcess("test/integration/kafka/processes/consumer.mjs", { env });
    await publisher.publish(
      Array.from({ length: 40 }, (_, at) => eventOf(topic.name, `order-${at % 4}`, at)),
    );
    await paused.waitForLine(/^executed \d+$/);
    await paused.kill("SIGSTOP");
    await publisher.publish(
      Array.from({ length: 40 }, (_, at) => eventOf(topic.name, `order-${at % 4}`, 40 + at)),
    );
    const other = ledger.consume({
      client: kafkaJsBinding.connect(),
      topics: [topic.name],
      sessionTimeoutMs: 3000,
    });
    await until(() => other.stats().assigned === 2, {
      timeoutMs: 30_000,
      what: "the paused member's partitions",
    });
    await ledger.reached(80);
    await topic.drained("ledger");
    await paused.kill("SIGCONT");
    // It comes back as a member like any other.
    await until(() => other.stats().assigned === 1, {
      timeoutMs: 30_000,
      what: "a partition for the one that woke up",
    });
    await publisher.publish(
      Array.from({ length: 40 }, (_, at) => eventOf(topic.name, `order-${at % 4}`, 80 + at)),
    );
    const effects = await ledger.reached(120);
    await topic.drained("ledger");
    expect(effects).toHaveLength(120);
    expect(inversions(effects)).toEqual([]);
  });
});

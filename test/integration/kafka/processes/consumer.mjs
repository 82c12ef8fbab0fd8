// A consumer process that stops where it is told, to be killed there.
import { Kafka, logLevel } from "kafkajs";
import { consume } from "idemkit/kafka";
import { fromKafkaJs } from "idemkit/kafkajs";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const { DATABASE_URL = "", KAFKA = "", TOPIC = "", HOLD_COMMITS } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, connectionTimeoutMillis: 10_000 });
const kafka = fromKafkaJs(new Kafka({ brokers: KAFKA.split(","), logLevel: logLevel.NOTHING }));

/**
 * Offsets are never sent, as if the process died before.
 * @type {import("idemkit/kafka").KafkaClient}
 */
const holding = {
  ...kafka,
  joinGroup: (settings, listener) => ({
    ...kafka.joinGroup(settings, listener),
    commit: () => new Promise(() => {}),
  }),
};

let done = 0;
consume(
  {
    database: fromPg(pool),
    client: HOLD_COMMITS ? holding : kafka,
    consumer: "ledger",
    topics: [TOPIC],
    groupId: `ledger.${TOPIC}`,
    sessionTimeoutMs: 3000,
    heartbeatMs: 500,
    maxWaitMs: 100,
    observe: {
      outcome: (outcome) => {
        done += 1;
        console.log(`${outcome} ${done}`);
      },
      committed: () => console.log("committed"),
    },
  },
  {
    "payment.charged": async ({ eventId, key, data }, { tx }) => {
      const { n } = /** @type {{ n: number }} */ (data);
      await tx.query("insert into effect (consumer, event_id, key, n) values ('ledger', $1, $2, $3)", [
        eventId,
        key,
        n,
      ]);
    },
  },
);

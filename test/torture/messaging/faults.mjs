// What goes wrong meanwhile, every few seconds, in an order that the seed decides.
import { setTimeout as delay } from "node:timers/promises";

/** @typedef {import("./processes.mjs").Worker} Worker */

/**
 * @param {{
 *   start: (script: string, name: string) => Worker,
 *   broker: import("../../../scripts/kafka/broker.mjs").Broker,
 *   server: import("../../../scripts/embedded-postgres.mjs").EmbeddedPostgres,
 *   random: () => number, seconds: number, log: (line: string) => void,
 * }} options
 */
export function faults({ start, broker, server, random, seconds, log }) {
  /** @type {Record<string, number>} */
  const counts = {};
  const consumers = [start("consumer.mjs", "consumer-1"), start("consumer.mjs", "consumer-2")];
  const relays = [start("relay.mjs", "relay-1"), start("relay.mjs", "relay-2")];
  /** @type {Worker[]} */
  const guests = [];
  const stopping = new AbortController();
  // A group needs a moment to get anywhere between two rebalances.
  const everyMs = seconds < 30 ? 1500 : 4000;

  const note = (/** @type {string} */ kind) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    log(kind);
  };

  /**
   * @param {Worker[]} among
   * @param {string} script
   * @param {NodeJS.Signals} signal
   */
  async function replace(among, script, signal) {
    const at = Math.floor(random() * among.length);
    const victim = among[at];
    if (victim === undefined) return;
    await victim.end(signal);
    await delay(random() * 1000);
    among[at] = start(script, victim.name);
  }

  /** @type {Record<string, () => Promise<void>>} */
  const kinds = {
    consumerKilled: () => replace(consumers, "consumer.mjs", "SIGKILL"),
    consumerRestarted: () => replace(consumers, "consumer.mjs", "SIGTERM"),
    relayKilled: () => replace(relays, "relay.mjs", "SIGKILL"),
    memberJoined: async () => void guests.push(start("consumer.mjs", `guest-${guests.length + 1}`)),
    memberLeft: async () => guests.pop()?.end("SIGTERM"),
    consumerPaused: async () => {
      const worker = consumers[Math.floor(random() * consumers.length)];
      worker?.send("SIGSTOP");
      await delay(500 + random() * 1500);
      worker?.send("SIGCONT");
    },
  };

  function nextKind() {
    const names = Object.keys(kinds).filter((name) => {
      if (name === "memberLeft") return guests.length > 0;
      return name !== "memberJoined" || guests.length < 2;
    });
    return names[Math.floor(random() * names.length)] ?? "consumerKilled";
  }

  async function small() {
    while (!stopping.signal.aborted) {
      await delay((0.5 + random()) * everyMs);
      if (stopping.signal.aborted) return;
      const kind = nextKind();
      note(kind);
      await kinds[kind]?.();
    }
  }

  async function brokerOnce() {
    await delay(seconds * 300);
    note("brokerKilled");
    await broker.kill();
    await broker.start();
    log("the broker is back");
  }

  async function databaseOnce() {
    await delay(seconds * 700);
    note("databaseStopped");
    await server.stop("immediate");
    await delay(2000);
    await server.start();
    log("the database is back");
  }

  const ended = Promise.all([small(), brokerOnce(), databaseOnce()]);
  return {
    counts,
    /** No more faults: everything that was begun is undone. */
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
}

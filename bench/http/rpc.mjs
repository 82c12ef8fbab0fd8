// Calls between the benchmark and its processes: one question, one answer, over the channel that `fork` opens.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/**
 * @typedef {object} Peer
 * @property {(name: string, input?: unknown) => Promise<any>} call one at a time
 * @property {() => Promise<void>} stop
 */

/**
 * Starts a process of the benchmark; it ends with this one.
 * @param {string} file relative to this folder
 * @param {readonly string[]} [args]
 * @returns {Peer}
 */
export function startPeer(file, args = []) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [...args], { serialization: "advanced" });
  const gone = once(child, "exit").then(([code, signal]) => {
    throw new Error(`${file} ${args.join(" ")} ended with ${code ?? signal}`);
  });
  gone.catch(() => {}); // told to whoever waits for an answer
  return {
    call: async (name, input) => {
      child.send({ name, input });
      const [message] = await Promise.race([once(child, "message"), gone]);
      if ("error" in message) throw new Error(`${file} ${args.join(" ")}: ${message.error}`);
      return message.output;
    },
    stop: async () => {
      child.disconnect();
      await gone.catch(() => {});
    },
  };
}

/**
 * Answers the calls of the process that started this one, and ends with it.
 * @param {Record<string, (input: any) => unknown>} functions
 */
export function serve(functions) {
  process.on("message", async (/** @type {{ name: string, input: unknown }} */ { name, input }) => {
    try {
      process.send?.({ output: await functions[name]?.(input) });
    } catch (error) {
      process.send?.({ error: error instanceof Error ? error.stack : String(error) });
    }
  });
  process.on("disconnect", () => process.exit());
}

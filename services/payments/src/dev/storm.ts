import { setTimeout as delay } from "node:timers/promises";
import { rowsOf } from "./counts.ts";
import { newCharge } from "./customer.ts";
import type { Answer, Customer } from "./customer.ts";
import type { Scene } from "./scene.ts";

const DUPLICATES = 50;

/** Fifty equal requests at once; those that are told to come back do so until they have their answer. */
export const storm = async (scene: Scene, customer: Customer): Promise<void> => {
  const charge = await newCharge(customer, "storm");
  const key = `charge-storm-${customer.sub}`;
  const send = (): Promise<Answer> => customer.post("/payments", charge, key);
  const first = await Promise.all(Array.from({ length: DUPLICATES }, send));
  const final = await Promise.all(first.map((answer) => untilFinal(answer, send, scene.stopped)));
  const bodies = new Set(final.map((answer) => answer.text));
  scene.say(`\n${DUPLICATES} duplicates at once`);
  scene.say(`  at first:         ${tally(first)}`);
  scene.say(`  after coming back: ${tally(final)}, different bodies: ${bodies.size}`);
  scene.say(`  ${await rowsOf(scene.pool, customer.sub)}`);
};

const untilFinal = async (
  answer: Answer,
  send: () => Promise<Answer>,
  signal: AbortSignal,
): Promise<Answer> => {
  const retryAfter = Number(answer.headers.get("retry-after") ?? 0);
  if (retryAfter === 0) {
    return answer;
  }
  // Jitter, or the duplicates would all come back at the same moment.
  await delay(retryAfter * 1000 * (1 + Math.random()), undefined, { signal });
  return untilFinal(await send(), send, signal);
};

const tally = (answers: readonly Answer[]): string => {
  const counts = new Map<string, number>();
  for (const answer of answers) {
    const name = answer.headers.has("idempotent-replayed")
      ? `${answer.status} replayed`
      : String(answer.status);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(", ");
};

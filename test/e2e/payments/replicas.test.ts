import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, countPayments, newShopper } from "./client.ts";
import type { Answer } from "./client.ts";
import { persist } from "./persist.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

const KEYS = 8;
const REQUESTS = 400;
let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

test("makes 8 payments of 400 requests with 8 keys at once, on two processes with pools of five", async () => {
  const replicas = await Promise.all([
    stage.startReplica({ poolSize: 5 }),
    stage.startReplica({ poolSize: 5 }),
  ]);
  const urls = replicas.map((replica) => replica.url);
  const shoppers = await Promise.all(Array.from({ length: KEYS }, () => newShopper(stage, urls[0] ?? "")));
  const commands = shoppers.map(({ token, charge }) => ({ token, key: unique("key"), body: charge }));
  const sent = Array.from({ length: REQUESTS }, async (_, index) => {
    const command = index % KEYS;
    const url = urls[Math.floor(index / KEYS) % urls.length] ?? "";
    return { command, answer: await ask(`${url}/payments`, commands[command]) };
  });
  const answers = await Promise.all(sent);

  expect(await countPayments(stage)).toBe(KEYS);
  const inProgress = answers.filter(({ answer }) => answer.status === 409);
  for (const { answer } of inProgress) {
    expect(answer.json["code"]).toBe("operation_in_progress");
    expect(answer.headers.get("retry-after")).toBe("1");
  }
  const finals = await Promise.all(
    commands.map((call, index) => persist(`${urls[index % urls.length]}/payments`, call)),
  );
  for (const [index, { final }] of finals.entries()) {
    const finished = answers.filter(({ command, answer }) => command === index && answer.status !== 409);
    const equal = ({ answer }: { answer: Answer }): boolean =>
      answer.status === 201 && answer.text === final.text;
    expect(finished.filter((each) => !equal(each))).toEqual([]);
  }
  expect(await countPayments(stage)).toBe(KEYS);
});

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { expect, test } from "vitest";

import { withDeadline } from "../../../src/internal/deadline.ts";

const never = (): Promise<never> => new Promise(() => {});

test("work that is never answered ends at its deadline, also when memory is collected meanwhile", async () => {
  setFlagsFromString("--expose_gc");
  const collect = runInNewContext("gc") as () => void;
  const all = Array.from({ length: 50 }, () => withDeadline(new AbortController().signal, 200, never));
  const timer = setInterval(collect, 20);
  const ended = await Promise.allSettled(all);
  clearInterval(timer);
  expect(new Set(ended.map((each) => each.status === "rejected" && (each.reason as Error).name))).toEqual(
    new Set(["TimeoutError"]),
  );
});

test("work ends with its caller's signal, also one that aborted before", async () => {
  const controller = new AbortController();
  const running = withDeadline(controller.signal, 60_000, never);
  controller.abort(new Error("called off"));
  await expect(running).rejects.toThrow("called off");
  await expect(withDeadline(controller.signal, 60_000, never)).rejects.toThrow("called off");
});

test("work in time keeps its result, and its signal is left alone", async () => {
  let given: AbortSignal | undefined;
  const result = await withDeadline(undefined, 60_000, (signal) => {
    given = signal;
    return Promise.resolve("done");
  });
  expect([result, given?.aborted]).toEqual(["done", false]);
});

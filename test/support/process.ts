import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

import { guardProcess } from "../../scripts/process/guard.mjs";
import { until } from "./until.ts";

export interface ProcessEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface TestProcess {
  readonly pid: number;
  /** Every line of both outputs so far. */
  readonly lines: readonly string[];
  readonly exited: Promise<ProcessEnd>;
  readonly stdin: NodeJS.WritableStream;
  /** The first line that matches, of all so far or of those to come; rejects when the process ends without one. */
  waitForLine(pattern: RegExp, options?: { timeoutMs?: number; after?: number }): Promise<RegExpExecArray>;
  /** Sends the signal at once. SIGSTOP and SIGCONT resolve at once too, the others when the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<ProcessEnd | undefined>;
  [Symbol.asyncDispose](): Promise<void>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const running = new Set<ChildProcess>();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

function collect(stream: Readable | null, lines: string[]): void {
  if (stream) createInterface({ input: stream }).on("line", (line) => lines.push(line));
}

function watchEnd(child: ChildProcess, state: { end?: ProcessEnd }): Promise<ProcessEnd> {
  const callOff = guardProcess(child.pid ?? 0, { signal: "KILL" });
  running.add(child);
  return new Promise((settle) => {
    child.once("exit", callOff);
    child.once("close", (code, signal) => {
      running.delete(child);
      state.end = { code, signal };
      settle(state.end);
    });
  });
}

/**
 * Runs a script with Node, from the checkout's root. It gets the signal to end when the test's process does, however that is.
 *
 * @param script - a path from the root, such as `services/payments/dist/main.js`
 */
export function spawnProcess(
  script: string,
  options: { env?: Record<string, string>; args?: string[]; nodeArgs?: string[]; cwd?: string } = {},
): TestProcess {
  const { env = {}, args = [], nodeArgs = [], cwd = root } = options;
  const child = spawn(process.execPath, [...nodeArgs, resolve(root, script), ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: "pipe",
  });
  if (child.pid === undefined) throw new Error(`${script} could not be started`);
  const { pid } = child;
  const lines: string[] = [];
  const state: { end?: ProcessEnd } = {};
  collect(child.stdout, lines);
  collect(child.stderr, lines);
  // A process that was killed doesn't read any more: that is no fault of the test.
  child.stdin.on("error", () => {});
  const exited = watchEnd(child, state);

  const match = (pattern: RegExp, after: number): RegExpExecArray | undefined => {
    const line = lines.slice(after).find((candidate) => candidate.search(pattern) >= 0);
    return line === undefined
      ? undefined
      : (new RegExp(pattern.source, pattern.flags.replace("g", "")).exec(line) ?? undefined);
  };
  const kill = async (signal: NodeJS.Signals = "SIGKILL"): Promise<ProcessEnd | undefined> => {
    if (!state.end) child.kill(signal);
    return signal === "SIGSTOP" || signal === "SIGCONT" ? undefined : exited;
  };
  return {
    pid,
    lines,
    exited,
    stdin: child.stdin,
    kill,
    waitForLine: (pattern, { timeoutMs = 30_000, after = 0 } = {}) =>
      until(
        () => {
          const found = match(pattern, after);
          if (!found && state.end)
            throw new Error(`${script} ended (${JSON.stringify(state.end)}):\n${lines.join("\n")}`);
          return found;
        },
        { timeoutMs, what: `a line of ${script} like ${pattern} in:\n${lines.join("\n")}` },
      ),
    [Symbol.asyncDispose]: async () => void (await kill("SIGKILL")),
  };
}

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** A process of the service, as those who run it see it. */
export interface Child {
  readonly pid: number;
  /** Settles when the process has ended, whatever the reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
  /** SIGKILL: nothing gets a chance to clean up. */
  kill(): Promise<void>;
}

/** What a process says once it has started: that it has, or where it listens. */
export interface Started {
  readonly started?: true;
  readonly url?: string;
}

/**
 * Starts a process of the service; `started` rejects when it ends before it has said so, and it has said why. Its IPC
 * channel ends with this process, and it with that; detached, so that Ctrl-C reaches us alone and we choose the order of
 * stopping.
 */
export const startedChild = (
  script: string,
  env: Readonly<Record<string, string>>,
  onMessage: (message: unknown) => void = () => {},
): { readonly child: Child; readonly started: Promise<Started> } => {
  const spawned = spawn(process.execPath, [script], {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  spawned.on("message", onMessage);
  const ended = once(spawned, "exit").then(() => {});
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    spawned.kill(signal);
    await ended;
  };
  const child = {
    pid: spawned.pid ?? 0,
    ended,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
  return { child, started: Promise.race([startOf(spawned), failed(ended)]) };
};

const startOf = (spawned: ChildProcess): Promise<Started> =>
  new Promise((resolve) => {
    spawned.on("message", (message: Started) => {
      if (message.started === true || message.url !== undefined) {
        resolve(message);
      }
    });
  });

const failed = async (ended: Promise<void>): Promise<never> => {
  await ended;
  throw new Error("a process of the service ended before it had started");
};

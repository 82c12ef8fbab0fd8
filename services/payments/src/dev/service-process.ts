import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  /** Settles when the process has ended, whatever the reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
  /** SIGKILL: nothing gets a chance to clean up. */
  kill(): Promise<void>;
}

/**
 * Starts the service, or the provider, as a process of its own and waits until it listens. Its IPC channel ends with this process, and
 * it with that; detached, so that Ctrl-C reaches us alone and we choose the order of stopping.
 * @throws Error when the process ends before it listens; it has said why
 */
export const startServiceProcess = async (
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<ServiceProcess> => {
  const child = spawn(process.execPath, [script], {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit").then(() => {});
  const url = await listening(child, ended);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  return { url, pid: child.pid ?? 0, ended, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
};

const listening = async (child: ChildProcess, ended: Promise<void>): Promise<string> => {
  const said = once(child, "message").then(([message]: { url?: string }[]) => message?.url);
  const url = await Promise.race([said, ended]);
  if (typeof url !== "string") {
    throw new TypeError("a process ended before it listened");
  }
  return url;
};

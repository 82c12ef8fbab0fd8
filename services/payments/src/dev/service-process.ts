import { startedChild } from "./child-process.ts";
import type { Child } from "./child-process.ts";

export interface ServiceProcess extends Child {
  readonly url: string;
}

/**
 * Starts the service, or the provider, as a process of its own and waits until it listens.
 * @throws Error when the process ends before it listens; it has said why
 */
export const startServiceProcess = async (
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<ServiceProcess> => {
  const { child, started } = startedChild(script, env);
  const { url } = await started;
  if (url === undefined) {
    throw new Error("a process says that it started, but not where it listens");
  }
  return { ...child, url };
};

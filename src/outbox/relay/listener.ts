import type { Running } from "../../internal/loop.ts";
import { backoffMs } from "../../internal/runtime.ts";
import type { Runtime } from "../../internal/runtime.ts";
import { channelOf } from "../wake.ts";

/** The members that are called of a client that listens; an unconnected `Client` of `pg` fits. */
export interface ListenClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<unknown>;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
}

/**
 * How a relay listens. It needs a direct connection: LISTEN does not live through a transaction-pooling proxy.
 * With `connectionString` the package `pg` is loaded; `client` makes an unconnected client, a new one after each loss.
 */
export type ListenOptions = { readonly connectionString: string } | { readonly client: () => ListenClient };

/** What a listener tells. */
export interface ListenerEvents {
  notified(payload: string): void;
  /** Called when notifications may have been missed: at each connect. */
  connected(): void;
  failed(error: unknown): void;
}

const retry = { baseMs: 200, maxMs: 10_000 };

/** Listens until it is stopped, where that is wanted, connecting again and again; while it can't, the relay's polls find the events. */
export function startListener(
  schema: string,
  options: ListenOptions | undefined,
  runtime: Runtime,
  { notified, connected, failed }: ListenerEvents,
): Running | undefined {
  if (options === undefined) return undefined;
  const given = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let current: ListenClient | undefined;

  async function listen(): Promise<void> {
    const client = await newClient(given);
    current = client;
    const lost = new Promise<Error | undefined>((resolve) => {
      client.on("error", resolve);
      client.on("end", () => resolve(undefined));
    });
    client.on("notification", ({ payload }) => notified(payload ?? ""));
    try {
      await client.connect();
      await client.query(`listen ${channelOf(schema)}`);
      if (!signal.aborted) connected();
      const error = signal.aborted ? undefined : await lost;
      if (!signal.aborted) throw error ?? new Error("the connection has ended");
    } finally {
      await client.end().catch(() => {});
    }
  }

  async function rounds(): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      const startedMs = runtime.monotonicMs();
      try {
        await listen();
      } catch (error) {
        failures = runtime.monotonicMs() - startedMs > retry.maxMs ? 1 : failures + 1;
        if (!signal.aborted) failed(error);
      }
      if (signal.aborted) return;
      await runtime.sleep(retry.baseMs + backoffMs(failures, retry, runtime.random), signal);
    }
  }

  const ended = rounds();
  const stop = async (): Promise<void> => {
    stopping.abort();
    await current?.end().catch(() => {});
    await ended;
  };
  return { stop, [Symbol.asyncDispose]: stop };
}

async function newClient(options: ListenOptions): Promise<ListenClient> {
  if ("client" in options) return options.client();
  const { default: pg } = await import("pg");
  return new pg.Client({ connectionString: options.connectionString, keepAlive: true });
}

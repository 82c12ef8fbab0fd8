import type { Call, Connections, Reserved } from "../postgres/connections.ts";

/** Renews the leases of all attempts of this process, by one statement at a time. */
export interface Heartbeat {
  /** Keeps a lease alive until the returned function is called; `onLost` when another attempt has taken it over. */
  keep(attemptId: string, onLost: () => void): () => void;
}

/** After a failed beat: soon enough to try again several times before a lease ends. */
const retryMs = 1000;

/** What a heartbeat renews, and how often. */
export interface HeartbeatSettings {
  /** The statement that renews these attempts' leases and returns the `attempt_id` of each that it renewed. */
  renewal(attemptIds: readonly string[]): Call;
  readonly heartbeatMs: number;
}

/**
 * One heartbeat for many attempts. It takes a connection of its own from the pool at the first beat and keeps it while
 * attempts run: a busy pool must not starve it. An attempt that is shorter than a beat costs nothing.
 */
export function heartbeat(
  connections: Connections<unknown>,
  { renewal, heartbeatMs }: HeartbeatSettings,
): Heartbeat {
  const active = new Map<string, () => void>();
  let timer: NodeJS.Timeout | undefined;
  let held: Reserved | undefined;

  async function beat(): Promise<void> {
    const attemptIds = [...active.keys()];
    held ??= await connections.reserve();
    const { rows } = await held.run(renewal(attemptIds));
    const renewed = new Set(rows.map((row) => row["attempt_id"]));
    for (const attemptId of attemptIds) if (!renewed.has(attemptId)) active.get(attemptId)?.();
  }

  function letGo(): void {
    held?.release();
    held = undefined;
  }

  async function beatOn(): Promise<void> {
    let pauseMs = heartbeatMs;
    try {
      if (active.size > 0) await beat();
    } catch {
      letGo();
      pauseMs = retryMs;
    }
    goOn(pauseMs);
  }

  function schedule(ms: number): void {
    timer = setTimeout(() => {
      void beatOn();
    }, ms);
    timer.unref();
  }

  function goOn(ms: number): void {
    timer = undefined;
    if (active.size > 0) schedule(ms);
    else letGo();
  }

  return {
    keep: (attemptId, onLost) => {
      active.set(attemptId, onLost);
      if (timer === undefined) schedule(heartbeatMs);
      return () => {
        active.delete(attemptId);
        if (active.size > 0 || timer === undefined || held !== undefined) return;
        clearTimeout(timer);
        timer = undefined;
      };
    },
  };
}

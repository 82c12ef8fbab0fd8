import type { Call, Connections, Reserved, Result } from "../../postgres/connections.ts";
import { noAnswer, within } from "./within.ts";

/** A connection that is reserved when it is first used, and anew after it failed. */
export interface ReservedConnection {
  run(call: Call): Promise<Result>;
  release(): void;
}

/** @param timeoutMs - how long an answer may take before the connection counts as lost */
export function reservedConnection(
  { reserve }: Pick<Connections<unknown>, "reserve">,
  timeoutMs: number,
): ReservedConnection {
  let reserved: Reserved | undefined;

  async function run(call: Call): Promise<Result> {
    reserved ??= await reserve();
    const current = reserved;
    try {
      const result = await within(timeoutMs, current.run(call));
      if (result === noAnswer) throw new Error(`no answer within ${timeoutMs} ms`);
      return result;
    } catch (error) {
      reserved = undefined;
      current.release(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }

  return {
    run,
    release: () => {
      reserved?.release();
      reserved = undefined;
    },
  };
}

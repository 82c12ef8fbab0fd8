import { runOnce, valueOf } from "idemkit";
import type { Outcome } from "idemkit";
import { problemOf } from "idemkit/http";
import { fromPg } from "idemkit/pg";

interface Client {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ rows: unknown[]; rowCount: number | null; command: string }>;
}

/** A user's own class of pool, known by the few members that the package calls. */
export async function charge(
  pool: Parameters<typeof fromPg>[0],
  orderId: string,
): Promise<{ orderId: string }> {
  const outcome: Outcome<{ orderId: string }> = await runOnce(
    fromPg(pool),
    { scope: "alice", operation: "charge", key: "k-1", command: { orderId } },
    async ({ tx }) => {
      await (tx as unknown as Client).query("select 1");
      return { orderId };
    },
  );
  return valueOf(outcome);
}

export function statusOf(error: unknown): number {
  return problemOf(error).status;
}

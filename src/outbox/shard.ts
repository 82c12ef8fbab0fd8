import { createHash } from "node:crypto";

/**
 * How many shards the outbox has. Fixed, because the shard is stored with the event: another number would move a key to
 * another shard while its earlier events still wait in the first. Sixteen relays are more than one table can feed.
 */
export const shardCount = 16;

/** Which lock orders a key's events, and which shard relays them. */
export interface Place {
  /** For `pg_advisory_xact_lock`: the first 64 bits of SHA-256, as the signed integer that PostgreSQL takes. */
  readonly lock: bigint;
  readonly shard: number;
}

/** Where the events of a key go; lengths in front keep `a` + `bc` and `ab` + `c` apart. */
export function placeOf(schema: string, topic: string, key: string): Place {
  const text = `idemkit.outbox\0${schema.length}:${schema}${topic.length}:${topic}${key.length}:${key}`;
  const digest = createHash("sha256").update(text, "utf8").digest();
  // Other bits than the lock's, and none of the schema's doing: a table moved to another schema keeps its shards.
  const shard = createHash("sha256").update(`${topic.length}:${topic}${key}`, "utf8").digest().readUInt8(31);
  return { lock: digest.readBigInt64BE(0), shard: shard % shardCount };
}

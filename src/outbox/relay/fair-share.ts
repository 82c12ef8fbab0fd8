/**
 * How many shards a relay should hold, when each of `others` can hold so many: an equal share, and what relays of a
 * small capacity leave is shared out among the rest. Rounded up, so that the shares never leave a shard without a relay.
 */
export function fairShare(shards: number, capacity: number, others: readonly number[]): number {
  const smaller = others.filter((other) => other < capacity).toSorted((a, b) => a - b);
  let left = shards;
  let relays = others.length + 1;
  for (const other of smaller) {
    left -= Math.min(other, Math.ceil(left / relays));
    relays -= 1;
  }
  return Math.min(capacity, Math.ceil(left / relays));
}

import { randomUUID } from "node:crypto";
import type { Ledger, LedgerEntry } from "./ledger.ts";

/** What a merchant asks for. */
export type Order = Omit<LedgerEntry, "id">;

/** The provider's rules over its books. */
export interface Bank {
  /** What was asked for under the key before, also where it is just being booked; with other details it is refused. */
  earlier(order: Order): Promise<LedgerEntry | "conflict" | undefined>;
  /** Books it and says so when it is on disk; `undefined` where a refund would exceed its charge. */
  book(order: Order, honoursKeys: boolean): Promise<LedgerEntry | undefined>;
  byKey(kind: LedgerEntry["kind"], key: string): LedgerEntry | undefined;
}

export const bank = (ledger: Ledger): Bank => {
  const byKey = new Map<string, Promise<LedgerEntry | undefined>>();
  const booked = new Map<string, LedgerEntry>();
  const charges = new Map<string, number>();
  const refunds = new Map<string, number>();
  const count = ({ kind, id, amount, reference }: LedgerEntry): void => {
    if (kind === "charge") {
      charges.set(id, Number(amount));
    } else {
      refunds.set(reference, (refunds.get(reference) ?? 0) + Number(amount));
    }
  };
  for (const entry of ledger.entries) {
    count(entry);
    booked.set(nameOf(entry.kind, entry.key), entry);
  }

  const write = async (order: Order): Promise<LedgerEntry | undefined> => {
    const { kind, reference, amount } = order;
    const left = (charges.get(reference) ?? 0) - (refunds.get(reference) ?? 0);
    // Cents are enough for a provider of tests; the service counts exactly.
    if (kind === "refund" && Number(amount) - left > 0.00001) {
      return undefined;
    }
    const entry = { ...order, id: `${kind === "charge" ? "ch" : "re"}_${randomUUID()}` };
    // Counted at once, so that two refunds can't share what is left; told to nobody before it is on disk.
    count(entry);
    await ledger.append(entry);
    booked.set(nameOf(entry.kind, entry.key), entry);
    return entry;
  };

  return {
    byKey: (kind, key) => booked.get(nameOf(kind, key)),
    earlier: async (order) => {
      const name = nameOf(order.kind, order.key);
      const found = (await byKey.get(name)) ?? booked.get(name);
      const same = found?.amount === order.amount && found.reference === order.reference;
      return found === undefined || same ? found : "conflict";
    },
    book: (order, honoursKeys) => {
      const name = nameOf(order.kind, order.key);
      const running = honoursKeys ? byKey.get(name) : undefined;
      const booking = running ?? write(order);
      byKey.set(name, booking);
      void booking.finally(() => byKey.delete(name));
      return booking;
    },
  };
};

const nameOf = (kind: string, key: string): string => `${kind} ${key}`;
